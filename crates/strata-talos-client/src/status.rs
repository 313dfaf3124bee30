//! How a gRPC call ended: the status in the trailers of the answer.

use http::HeaderMap;
use percent_encoding::percent_decode_str;

/// A gRPC status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(super) u16);

impl Code {
    pub(crate) const OK: Self = Self(0);
    pub(crate) const INVALID_ARGUMENT: Self = Self(3);
    pub(crate) const NOT_FOUND: Self = Self(5);
    pub(crate) const ALREADY_EXISTS: Self = Self(6);
    pub(crate) const PERMISSION_DENIED: Self = Self(7);
    pub(crate) const FAILED_PRECONDITION: Self = Self(9);
    pub(crate) const UNIMPLEMENTED: Self = Self(12);
    pub(crate) const UNAVAILABLE: Self = Self(14);
    pub(crate) const UNAUTHENTICATED: Self = Self(16);
}

/// Anything but success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl Status {
    /// Reads trailers; `None` if they hold no status. Headers are trailers where the answer has no body.
    pub(crate) fn read(trailers: &HeaderMap) -> Option<Result<(), Self>> {
        let text = |name| trailers.get(name).and_then(|value| value.to_str().ok());
        let code = Code(text("grpc-status")?.parse().unwrap_or(2));
        if code == Code::OK {
            return Some(Ok(()));
        }
        let message = text("grpc-message").unwrap_or_default();
        let message = percent_decode_str(message).decode_utf8_lossy().into_owned();
        Some(Err(Self { code, message }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(entries: &[(&'static str, &'static str)]) -> Option<Result<(), Status>> {
        let value = |value: &'static str| http::HeaderValue::from_static(value);
        let name = |name: &'static str| http::HeaderName::from_static(name);
        Status::read(&entries.iter().map(|(key, text)| (name(key), value(text))).collect())
    }

    #[test]
    fn reads_codes_and_messages() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("grpc-status", "0"), ("grpc-message", "")]), Some(Ok(())));
        let expected = Status { code: Code::ALREADY_EXISTS, message: "100% full\n".to_owned() };
        assert_eq!(read(&[("grpc-status", "6"), ("grpc-message", "100%25 full%0A")]), Some(Err(expected)));
        let unknown = Status { code: Code(2), message: String::new() };
        assert_eq!(read(&[("grpc-status", "x")]), Some(Err(unknown)));
    }
}
