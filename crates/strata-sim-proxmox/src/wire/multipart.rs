//! Reads the one kind of upload the API takes: some fields, then one file. The file is never held as a whole.

use bytes::Buf;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::api::Args;
use crate::upload::{Hasher, KEPT, Upload};

/// The headers and fields before the file may be this long.
const MOST_HEAD: usize = 64 << 10;

/// The boundary of a multipart content type.
pub(crate) fn boundary(content_type: &str) -> Option<&str> {
    let (kind, rest) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let value = rest.split(';').find_map(|p| p.trim().strip_prefix("boundary="))?;
    let value = value.trim_matches('"');
    (!value.is_empty()).then_some(value)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}

/// Fields and file of an upload, or what the API says about a broken one.
pub(crate) async fn read(mut body: Incoming, boundary: &str) -> Result<(Args, Upload), String> {
    let mut buffer: Vec<u8> = Vec::new();
    let mut fields = Args::default();
    let mut upload = Upload::default();
    // Fields: every part up to and including the headers of the file.
    loop {
        match next_part(&mut buffer, boundary)? {
            Part::Field(name, value) => fields.set(&name, value),
            Part::File(name) => {
                upload.filename = name;
                break;
            }
            Part::More => match frame(&mut body).await? {
                Some(bytes) if buffer.len() < MOST_HEAD || bytes.is_empty() => {
                    buffer.extend_from_slice(&bytes)
                }
                Some(_) | None => return Err("upload failed".to_owned()),
            },
        }
    }
    read_file(&mut body, &mut buffer, boundary, &mut upload, &fields).await?;
    Ok((fields, upload))
}

async fn frame(body: &mut Incoming) -> Result<Option<Vec<u8>>, String> {
    match body.frame().await {
        None => Ok(None),
        Some(Ok(frame)) => Ok(Some(
            frame
                .into_data()
                .map(|mut data| data.copy_to_bytes(data.remaining()).to_vec())
                .unwrap_or_default(),
        )),
        Some(Err(_)) => Err("upload failed".to_owned()),
    }
}

enum Part {
    Field(String, String),
    File(String),
    More,
}

/// Takes the next part off the front of the buffer, as far as it is there.
fn next_part(buffer: &mut Vec<u8>, boundary: &str) -> Result<Part, String> {
    let opening = format!("--{boundary}\r\n");
    let Some(start) = find(buffer, opening.as_bytes()) else { return Ok(Part::More) };
    let after = start + opening.len();
    let Some(headers_len) = find(&buffer[after..], b"\r\n\r\n") else { return Ok(Part::More) };
    let headers = String::from_utf8_lossy(&buffer[after..after + headers_len]).into_owned();
    let content = after + headers_len + 4;
    let name = quoted(&headers, "name").unwrap_or_default();
    if let Some(file) = quoted(&headers, "filename") {
        if name != "filename" {
            return Err(format!("wrong field name '{name}' for file upload, expected 'filename'"));
        }
        buffer.drain(..content);
        return Ok(Part::File(file.trim().to_owned()));
    }
    let closing = format!("\r\n--{boundary}");
    let Some(length) = find(&buffer[content..], closing.as_bytes()) else { return Ok(Part::More) };
    let value = String::from_utf8_lossy(&buffer[content..content + length]).trim().to_owned();
    buffer.drain(..content + length + 2);
    Ok(Part::Field(name, value))
}

/// `key="value"` in a header, where `key` is not the end of a longer word.
fn quoted(headers: &str, key: &str) -> Option<String> {
    let pattern = format!("{key}=\"");
    let at = headers
        .match_indices(&pattern)
        .map(|(at, _)| at)
        .find(|at| *at > 0 && !headers[..*at].ends_with(|c: char| c.is_ascii_alphanumeric()))?;
    let rest = &headers[at + pattern.len()..];
    Some(rest[..rest.find('"')?].to_owned())
}

async fn read_file(
    body: &mut Incoming,
    buffer: &mut Vec<u8>,
    boundary: &str,
    upload: &mut Upload,
    fields: &Args,
) -> Result<(), String> {
    let closing = format!("\r\n--{boundary}--");
    let algorithm = fields.text("checksum-algorithm").unwrap_or_default();
    let mut wanted = Hasher::new(algorithm);
    let mut sha256 = Hasher::new("sha256");
    let mut take = |upload: &mut Upload, data: &[u8]| {
        upload.size += data.len() as u64;
        let room = KEPT.saturating_sub(upload.head.len()).min(data.len());
        upload.head.extend_from_slice(&data[..room]);
        for hasher in [wanted.as_mut(), sha256.as_mut()].into_iter().flatten() {
            hasher.update(data);
        }
    };
    loop {
        if let Some(end) = find(buffer, closing.as_bytes()) {
            take(upload, &buffer[..end]);
            break;
        }
        // What could still be the beginning of the closing line stays.
        let safe = buffer.len().saturating_sub(closing.len());
        take(upload, &buffer[..safe]);
        buffer.drain(..safe);
        match frame(body).await? {
            Some(bytes) => buffer.extend_from_slice(&bytes),
            None => return Err("upload failed".to_owned()),
        }
    }
    // Whatever follows the closing line is read and dropped, so that the connection stays usable.
    while frame(body).await?.is_some() {}
    upload.sha256 = sha256.map(Hasher::hex).unwrap_or_default();
    upload.checksum = wanted.map(|hasher| (algorithm.to_owned(), hasher.hex()));
    upload.temporary = format!("/var/tmp/pveupload-{}", &upload.sha256[..32]);
    Ok(())
}
