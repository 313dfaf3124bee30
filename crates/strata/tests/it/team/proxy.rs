//! A proxy between a client and a server that loses answers: the request arrives, and the connection is gone.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) struct CuttingProxy {
    address: SocketAddr,
    cuts: Arc<AtomicU64>,
}

impl CuttingProxy {
    /// Loses every `nth` answer.
    pub(crate) fn start(server: SocketAddr, nth: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (cuts, answers) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let counted = cuts.clone();
        // Ends with the process: it waits for connections and does nothing else.
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(there) = TcpStream::connect(server) else { continue };
                let (up, down) = (client.try_clone().unwrap(), there.try_clone().unwrap());
                std::thread::spawn(move || copy(up, there, || false));
                let (answers, cuts) = (answers.clone(), counted.clone());
                std::thread::spawn(move || {
                    copy(down, client, || {
                        let cut = answers.fetch_add(1, Ordering::SeqCst) % nth == nth - 1;
                        cuts.fetch_add(u64::from(cut), Ordering::SeqCst);
                        cut
                    });
                });
            }
        });
        Self { address, cuts }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::SeqCst)
    }
}

/// Until one side ends, or what has come is not to go on.
fn copy(mut from: TcpStream, mut to: TcpStream, cut: impl Fn() -> bool) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if cut() || to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
