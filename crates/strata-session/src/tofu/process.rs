//! A run of OpenTofu that is followed line by line, passes an interrupt on once, and outlives Strata if it must.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use strata_engine::StopSignal;
use tokio::process::Child;

use super::memory::MemoryFile;

/// How often it is looked what was said.
const LOOK: Duration = Duration::from_millis(50);

/// How a run ended.
pub struct Ended {
    pub status: ExitStatus,
    /// The user said stop, and it was told.
    pub interrupted: bool,
    /// What it said on its standard error.
    pub noted: String,
}

/// Runs a command to its end. With a signal to stop by, the command is out of the terminal's reach: an interrupt is passed on once,
/// which lets OpenTofu finish what runs and save its state. A second one would make it drop both, so it is not passed on.
pub(super) async fn follow(
    mut command: Command,
    stop: Option<&StopSignal>,
    started: impl FnOnce(),
    mut heard: impl FnMut(&str),
) -> io::Result<Ended> {
    let (said, noted) = (MemoryFile::private()?, MemoryFile::private()?);
    command.stdin(Stdio::null()).stdout(said.stdio()?).stderr(noted.stdio()?);
    if stop.is_some() {
        command.process_group(0);
    }
    let mut child = tokio::process::Command::from(command).spawn()?;
    started();
    let mut lines = Lines { file: said, at: 0 };
    let mut interrupted = false;
    let status = loop {
        let stopped = async {
            match stop {
                Some(stop) => stop.called(1).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            status = child.wait() => break status?,
            () = stopped, if !interrupted => {
                interrupted = true;
                interrupt(&child);
            }
            () = tokio::time::sleep(LOOK) => lines.each(false, &mut heard)?,
        }
    };
    lines.each(true, &mut heard)?;
    let noted = String::from_utf8_lossy(&noted.read_from(0)?).trim().to_owned();
    Ok(Ended { status, interrupted, noted })
}

fn interrupt(child: &Child) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended by itself just now.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
    }
}

struct Lines {
    file: MemoryFile,
    at: u64,
}

impl Lines {
    /// The lines that are new; at the end, also one that has no end.
    fn each(&mut self, all: bool, heard: &mut impl FnMut(&str)) -> io::Result<()> {
        let new = self.file.read_from(self.at)?;
        let whole = match new.iter().rposition(|byte| *byte == b'\n') {
            _ if all => new.len(),
            Some(last) => last + 1,
            None => return Ok(()),
        };
        self.at += whole as u64;
        let text = String::from_utf8_lossy(&new[..whole]);
        text.lines().filter(|line| !line.trim().is_empty()).for_each(heard);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[tokio::test]
    async fn everything_is_heard() {
        let mut lines = Vec::new();
        let script = "echo one; sleep 0.2; printf 'two\\nthr'; sleep 0.2; printf ee; echo no >&2; exit 3";
        let ended = follow(shell(script), None, || {}, |line| lines.push(line.to_owned())).await.unwrap();
        assert_eq!(lines, ["one", "two", "three"]);
        assert_eq!((ended.status.code(), ended.noted.as_str(), ended.interrupted), (Some(3), "no", false));
    }

    #[tokio::test]
    async fn an_interrupt_is_passed_on_once() {
        let stop = StopSignal::default();
        let (mut lines, other) = (Vec::new(), stop.clone());
        // It counts interrupts, and goes on.
        let script = "trap 'echo interrupted' INT; echo ready; i=0; while [ $i -lt 12 ]; do sleep 0.1; i=$((i+1)); done; exit 1";
        let heard = |line: &str| {
            other.stop();
            lines.push(line.to_owned());
        };
        let ended = follow(shell(script), Some(&stop), || {}, heard).await.unwrap();
        assert!(ended.interrupted && stop.now());
        assert_eq!(lines, ["ready", "interrupted"]);
    }
}
