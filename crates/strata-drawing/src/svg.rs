//! The picture as SVG: one text, no scripts, nothing from elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::layout::{MARGIN, Plane, Rect, TOP, plane};
use crate::picture::{Change, Picture};
use crate::reduce;

const STYLE: &str = "
  svg { font: 12px system-ui, sans-serif; background: #fff; color: #1d2430; }
  text { fill: currentColor; }
  .band { fill: #eef1f6; } .band.odd { fill: #e4e9f1; }
  .lane { fill: none; stroke: #c3ccd9; stroke-dasharray: 4 4; }
  .name { font-weight: 600; } .stack { fill: #5b6675; font-size: 11px; }
  .node rect { fill: #fff; stroke: #9aa6b8; }
  .node.create rect { fill: #d9f2de; stroke: #2f8f46; } .node.change rect { fill: #fdf0cf; stroke: #b27a06; }
  .node.replace rect { fill: #eeddf8; stroke: #8440b3; } .node.destroy rect { fill: #fadcdc; stroke: #c03434; }
  .edge { fill: none; stroke: #7d8aa0; stroke-opacity: .38; }
  .dim { opacity: .15; } .edge.lit { stroke: #1f6feb; stroke-opacity: 1; stroke-width: 1.6; }
";

/// Letters of a label that fit a box.
const LETTERS: usize = 25;

/// An image of the graph.
pub fn svg(picture: &Picture) -> String {
    let plane = plane(picture);
    let (width, height) = (plane.width.max(420), plane.height.max(TOP));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\">\n<title>What there is, and what needs what</title>\n<style>{STYLE}</style>\n"
    );
    ground(&plane, &mut out);
    legend(picture, &mut out);
    edges(picture, &plane, &mut out);
    for placed in &plane.boxes {
        let (node, Rect { x, y, width, height }) = (placed.node, placed.rect);
        let change = node.change.map_or(String::new(), |change| format!(" {}", change.as_str()));
        let does = node.change.map_or(String::new(), |change| format!(": {}", change.as_str()));
        let _ = writeln!(
            out,
            "<g class=\"node{change}\" data-id=\"{id}\"><title>{id}{does}</title>\
             <rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"5\"/>\
             <text x=\"{}\" y=\"{}\">{}</text></g>",
            x + 8,
            y + 17,
            escaped(&shortened(&node.label)),
            id = escaped(&node.id),
        );
    }
    out.push_str("</svg>\n");
    out
}

fn ground(plane: &Plane<'_>, out: &mut String) {
    for (place, (name, Rect { x, y, width, height })) in plane.bands.iter().enumerate() {
        let odd = if place % 2 == 1 { " odd" } else { "" };
        let middle = y + height / 2;
        let _ = writeln!(
            out,
            "<rect class=\"band{odd}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>\
             <text class=\"name\" text-anchor=\"middle\" transform=\"translate({},{middle}) rotate(-90)\">{}</text>",
            MARGIN / 2 + 4,
            escaped(name)
        );
    }
    for (name, Rect { x, y, width, height }) in &plane.lanes {
        let shown = if name.is_empty() { "on no hypervisor" } else { name };
        let _ = writeln!(
            out,
            "<rect class=\"lane\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>\
             <text class=\"name\" x=\"{}\" y=\"{}\">{}</text>",
            x + 14,
            y - 10,
            escaped(shown)
        );
    }
    for (stack, x, y) in &plane.headings {
        let _ = writeln!(out, "<text class=\"stack\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(stack));
    }
}

/// What the colours mean, as far as there are any.
fn legend(picture: &Picture, out: &mut String) {
    let mut x = MARGIN;
    for change in Change::ALL {
        let count = picture.nodes.iter().filter(|node| node.change == Some(change)).count();
        if count > 0 {
            let name = change.as_str();
            let _ = writeln!(
                out,
                "<g class=\"node {name}\"><rect x=\"{x}\" y=\"14\" width=\"16\" height=\"16\" rx=\"4\"/>\
                 <text x=\"{}\" y=\"27\">{name} {count}</text></g>",
                x + 22
            );
            x += 110;
        }
    }
}

fn edges(picture: &Picture, plane: &Plane<'_>, out: &mut String) {
    let places: BTreeMap<&str, Rect> =
        plane.boxes.iter().map(|placed| (placed.node.id.as_str(), placed.rect)).collect();
    for (from, to) in reduce::edges(picture) {
        let (Some(one), Some(other)) = (places.get(from), places.get(to)) else { continue };
        let _ = writeln!(
            out,
            "<path class=\"edge\" data-from=\"{}\" data-to=\"{}\" d=\"{}\"/>",
            escaped(from),
            escaped(to),
            curve(*one, *other)
        );
    }
}

/// From the lower edge to the upper where the other is below, else from side to side.
fn curve(from: Rect, to: Rect) -> String {
    if from.y + from.height < to.y {
        let (x, y) = (from.x + from.width / 2, from.y + from.height);
        let (to_x, bend) = (to.x + to.width / 2, (to.y - y) / 2);
        return format!("M{x} {y}C{x} {} {to_x} {} {to_x} {}", y + bend, to.y - bend, to.y);
    }
    let (y, to_y) = (from.y + from.height / 2, to.y + to.height / 2);
    let (x, to_x) = if from.x < to.x { (from.x + from.width, to.x) } else { (from.x, to.x + to.width) };
    let middle = x.midpoint(to_x);
    format!("M{x} {y}C{middle} {y} {middle} {to_y} {to_x} {to_y}")
}

fn shortened(label: &str) -> String {
    if label.chars().count() <= LETTERS {
        return label.to_owned();
    }
    let cut: String = label.chars().take(LETTERS - 1).collect();
    format!("{cut}…")
}

pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}
