//! `multipart/form-data` bodies: a few fields and one file.

use bytes::Bytes;

use crate::Body;

/// A form under construction. Held in memory as a whole: what is uploaded here is small.
#[derive(Default)]
pub struct Multipart {
    parts: Vec<(String, Vec<u8>)>,
}

impl Multipart {
    /// A form without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field.
    #[must_use]
    pub fn field(mut self, name: &str, value: &str) -> Self {
        let head = format!("Content-Disposition: form-data; name=\"{}\"\r\n\r\n", quoted(name));
        self.parts.push((head, value.as_bytes().to_vec()));
        self
    }

    /// Adds a file.
    #[must_use]
    pub fn file(mut self, name: &str, filename: &str, content: Vec<u8>) -> Self {
        let head = format!(
            "Content-Disposition: form-data; name=\"{}\"; filename=\"{}\"\r\nContent-Type: application/octet-stream\r\n\r\n",
            quoted(name),
            quoted(filename)
        );
        self.parts.push((head, content));
        self
    }

    /// The whole as the body of a request.
    pub fn into_body(self) -> Body {
        let boundary = self.boundary();
        let mut bytes =
            Vec::with_capacity(self.parts.iter().map(|(head, body)| head.len() + body.len() + 64).sum());
        for (head, body) in &self.parts {
            bytes.extend_from_slice(format!("--{boundary}\r\n{head}").as_bytes());
            bytes.extend_from_slice(body);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        Body::Bytes {
            content_type: format!("multipart/form-data; boundary={boundary}"),
            bytes: Bytes::from(bytes),
        }
    }

    /// A line that no part contains; equal forms give equal bodies.
    fn boundary(&self) -> String {
        (0u64..)
            .map(|n| format!("strata-part-{n:016x}"))
            .find(|boundary| !self.parts.iter().any(|(_, body)| contains(body, boundary.as_bytes())))
            .expect("a finite form contains finitely many boundaries")
    }
}

fn contains(body: &[u8], needle: &[u8]) -> bool {
    body.windows(needle.len()).any(|window| window == needle)
}

/// Names stand in quotes within a header line.
fn quoted(text: &str) -> String {
    text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(form: Multipart) -> (String, String) {
        let Body::Bytes { content_type, bytes } = form.into_body() else { panic!("no body") };
        (content_type, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn writes_fields_before_the_file() {
        let (content_type, body) =
            text(Multipart::new().field("content", "iso").file("filename", "a.iso", b"data".to_vec()));
        let boundary = content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
        assert_eq!(
            body,
            format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\niso\r\n--{boundary}\r\nContent-Disposition: form-data; name=\"filename\"; filename=\"a.iso\"\r\nContent-Type: application/octet-stream\r\n\r\ndata\r\n--{boundary}--\r\n"
            )
        );
    }

    #[test]
    fn the_boundary_is_in_no_part() {
        let (content_type, _) = text(Multipart::new().field("a", "strata-part-0000000000000000"));
        assert!(content_type.ends_with("strata-part-0000000000000001"));
    }
}
