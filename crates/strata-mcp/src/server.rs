//! The conversation: one JSON object a line, answered as soon as the answer is there.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::fs::File;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::call::Runner;
use crate::message::{Message, NO_METHOD, NO_REQUEST, WRONG_PARAMETERS, done, failed};
use crate::tool::{Tool, command_line};

/// Versions of the protocol that this is one of, the newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Far more than any call: a line without an end fills no memory.
const LONGEST_LINE: u64 = 1024 * 1024;

/// Serves over standard input and output.
pub async fn serve_standard(
    name: (&str, &str),
    tools: &'static [Tool],
    runner: Arc<dyn Runner>,
) -> io::Result<()> {
    let stream = |end: BorrowedFd<'_>| Ok::<_, io::Error>(std::fs::File::from(end.try_clone_to_owned()?));
    let (input, output) = (stream(io::stdin().as_fd())?, stream(io::stdout().as_fd())?);
    serve(name, tools, runner, File::from_std(input), File::from_std(output)).await
}

/// Answers until the client closes its end; calls that still run are ended then.
pub async fn serve<R, W>(
    name: (&str, &str),
    tools: &'static [Tool],
    runner: Arc<dyn Runner>,
    input: R,
    mut output: W,
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin,
{
    let (answers, mut ready) = mpsc::unbounded_channel::<Value>();
    let mut conversation = Conversation {
        server: json!({"name": name.0, "version": name.1}),
        tools,
        runner,
        answers,
        running: BTreeMap::new(),
    };
    let mut lines = lines(input);
    loop {
        tokio::select! {
            line = lines.recv() => match line {
                Some(Ok(line)) => conversation.hear(&line),
                Some(Err(error)) => return Err(error),
                None => break,
            },
            Some(answer) = ready.recv() => write(&mut output, &answer).await?,
        }
    }
    conversation.running.values().for_each(JoinHandle::abort);
    // What was answered before the client closed is sent all the same.
    while let Ok(answer) = ready.try_recv() {
        write(&mut output, &answer).await?;
    }
    Ok(())
}

async fn write<W: AsyncWrite + Unpin>(output: &mut W, answer: &Value) -> io::Result<()> {
    output.write_all(format!("{answer}\n").as_bytes()).await?;
    output.flush().await
}

/// Lines are read by a task of their own: one that is half there when an answer goes out must not be lost.
fn lines<R: AsyncRead + Unpin + Send + 'static>(input: R) -> mpsc::Receiver<io::Result<String>> {
    let (sender, lines) = mpsc::channel(8);
    tokio::spawn(async move {
        let mut input = BufReader::new(input);
        loop {
            let mut line = Vec::new();
            let read = (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line).await;
            let read = match read {
                Ok(0) => return,
                Ok(_) if line.last() != Some(&b'\n') && line.len() as u64 == LONGEST_LINE => {
                    Err(io::Error::other("a line of the client is longer than 1 MiB"))
                }
                Ok(_) => Ok(String::from_utf8_lossy(&line).into_owned()),
                Err(error) => Err(error),
            };
            let ended = read.is_err();
            if sender.send(read).await.is_err() || ended {
                return;
            }
        }
    });
    lines
}

struct Conversation {
    server: Value,
    tools: &'static [Tool],
    runner: Arc<dyn Runner>,
    answers: mpsc::UnboundedSender<Value>,
    /// Calls by their ids, as text.
    running: BTreeMap<String, JoinHandle<()>>,
}

impl Conversation {
    fn hear(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        self.running.retain(|_, call| !call.is_finished());
        match Message::read(line) {
            Ok(Message::Request { id, method, params }) => self.asked(id, &method, &params),
            Ok(Message::Notification { method, params }) => self.told(&method, &params),
            Ok(Message::Answer) => {}
            Err(answer) => self.answer(answer),
        }
    }

    fn answer(&self, answer: Value) {
        // Nobody reads any more: the loop ends with the input.
        let _ = self.answers.send(answer);
    }

    fn asked(&mut self, id: Value, method: &str, params: &Value) {
        let answer = match method {
            "initialize" => done(id, self.introduction(params)),
            "ping" => done(id, json!({})),
            "tools/list" => {
                let tools: Vec<Value> = self.tools.iter().map(Tool::description).collect();
                done(id, json!({"tools": tools}))
            }
            "tools/call" => match self.call(&id, params) {
                Ok(()) => return,
                Err(problem) => failed(id, WRONG_PARAMETERS, problem),
            },
            _ => failed(id, NO_METHOD, format!("there is no method `{method}`")),
        };
        self.answer(answer);
    }

    fn told(&mut self, method: &str, params: &Value) {
        // Whoever cancels waits for no answer.
        if method == "notifications/cancelled"
            && let Some(call) = params.get("requestId").and_then(|id| self.running.remove(&id.to_string()))
        {
            call.abort();
        }
    }

    fn introduction(&self, params: &Value) -> Value {
        let wanted = params.get("protocolVersion").and_then(Value::as_str);
        let version = VERSIONS.into_iter().find(|known| wanted == Some(known)).unwrap_or(VERSIONS[0]);
        json!({
            "protocolVersion": version,
            "capabilities": {"tools": {"listChanged": false}},
            "serverInfo": self.server,
            "instructions": "These tools look and change nothing: neither files, nor states, nor machines. To change something, edit the \
                             files of the repository, validate and plan them, and leave the apply to a person or to the review of the change.",
        })
    }

    /// Begins a call; its answer comes when it has ended.
    fn call(&mut self, id: &Value, params: &Value) -> Result<(), String> {
        let name = params.get("name").and_then(Value::as_str).ok_or("a call names a tool")?;
        let tool = self.tools.iter().find(|tool| tool.name == name);
        let tool = tool.ok_or_else(|| format!("there is no tool `{name}`"))?;
        let line = command_line(tool, params.get("arguments").unwrap_or(&Value::Null))?;
        let key = id.to_string();
        if self.running.contains_key(&key) {
            self.answer(failed(id.clone(), NO_REQUEST, "a call with this id is running"));
            return Ok(());
        }
        let (runner, answers, id) = (Arc::clone(&self.runner), self.answers.clone(), id.clone());
        let call = tokio::spawn(async move {
            let ended = runner.run(line).await;
            let _ = answers.send(done(id, ended.result()));
        });
        self.running.insert(key, call);
        Ok(())
    }
}
