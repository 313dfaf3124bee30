//! The picture as a page that stands alone.

use crate::picture::Picture;
use crate::svg::{escaped, svg};

/// Shows what an object needs and what needs it, when the pointer is on it.
const SCRIPT: &str = "
const edges = [...document.querySelectorAll('.edge')], nodes = [...document.querySelectorAll('.node[data-id]')];
const walk = (id, from, to, seen = new Set()) => {
  for (const edge of edges) if (edge.dataset[from] === id && !seen.has(edge)) { seen.add(edge); walk(edge.dataset[to], from, to, seen); }
  return seen;
};
for (const node of nodes) {
  node.addEventListener('mouseenter', () => {
    const lit = new Set([...walk(node.dataset.id, 'from', 'to'), ...walk(node.dataset.id, 'to', 'from')]);
    const ids = new Set([node.dataset.id, ...[...lit].flatMap(edge => [edge.dataset.from, edge.dataset.to])]);
    edges.forEach(edge => { edge.classList.toggle('lit', lit.has(edge)); edge.classList.toggle('dim', !lit.has(edge)); });
    nodes.forEach(other => other.classList.toggle('dim', !ids.has(other.dataset.id)));
  });
  node.addEventListener('mouseleave', () => [...edges, ...nodes].forEach(one => one.classList.remove('lit', 'dim')));
}
";

/// A page with the image in it; `title` stands above it.
pub fn html(picture: &Picture, title: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <style>body {{ margin: 16px; font: 14px system-ui, sans-serif; }} h1 {{ font-size: 18px; }}</style>\n</head>\n\
         <body>\n<h1>{title}</h1>\n{}<script>{SCRIPT}</script>\n</body>\n</html>\n",
        svg(picture)
    )
}
