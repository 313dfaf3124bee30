//! HTTP client with TLS pinning, timeouts, classified retries; nothing of any one API.
