//! Requests to Amazon's services, signed (version 4). For the little that is asked beside the objects themselves.

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

pub(super) struct Signature<'a> {
    pub(super) key_id: &'a str,
    pub(super) secret: &'a str,
    pub(super) token: Option<&'a str>,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    pub(super) host: &'a str,
    /// Seconds since 1970.
    pub(super) unix: i64,
}

fn sign(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of HMAC has any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

impl Signature<'_> {
    /// Every header of a `POST /` with this body, but `host`.
    pub(super) fn headers(&self, given: &[(&'static str, &str)], body: &[u8]) -> Vec<(&'static str, String)> {
        let time = jiff::Timestamp::from_second(self.unix).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let stamp = time.strftime("%Y%m%dT%H%M%SZ").to_string();
        let day = &stamp[..8];
        let mut headers: Vec<(&'static str, String)> =
            given.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        headers.push(("x-amz-date", stamp.clone()));
        if let Some(token) = self.token {
            headers.push(("x-amz-security-token", token.to_owned()));
        }
        let mut signed = headers.clone();
        signed.push(("host", self.host.to_owned()));
        signed.sort();
        let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let lines: String = signed.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let body = hex::encode(Sha256::digest(body));
        let canonical = format!("POST\n/\n\n{lines}\n{names}\n{body}");
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let digest = hex::encode(Sha256::digest(canonical));
        let to_sign = format!("AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}");
        let parts = [day, self.region, self.service, "aws4_request"];
        let key =
            parts.iter().fold(format!("AWS4{}", self.secret).into_bytes(), |key, part| sign(&key, part));
        let signature = hex::encode(sign(&key, &to_sign));
        headers.push((
            "authorization",
            format!(
                "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
                self.key_id
            ),
        ));
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The case `post-vanilla` of the test suite that Amazon publishes for this signature.
    #[test]
    fn signs_as_amazon_expects_it() {
        let signature = Signature {
            key_id: "AKIDEXAMPLE",
            secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            token: None,
            region: "us-east-1",
            service: "service",
            host: "example.amazonaws.com",
            unix: 1_440_938_160,
        };
        let headers = signature.headers(&[], b"");
        assert_eq!(headers[0], ("x-amz-date", "20150830T123600Z".to_owned()));
        assert_eq!(
            headers[1].1,
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=host;x-amz-date, \
             Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
        );
    }
}
