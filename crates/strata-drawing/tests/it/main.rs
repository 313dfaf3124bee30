//! Pictures: what stands where, and that they are sound.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use strata_drawing::{Change, Node, Picture, Rect, html, plane, svg};

fn node(id: &str, layer: usize, lane: &str, stack: &str, change: Option<Change>) -> Node {
    let text = |text: &str| text.to_owned();
    Node { id: text(id), label: text(id), stack: text(stack), layer, lane: text(lane), change }
}

fn layers() -> Vec<String> {
    ["hypervisors", "platforms", "workloads"].map(str::to_owned).to_vec()
}

fn overlap(one: Rect, other: Rect) -> bool {
    one.x < other.x + other.width
        && other.x < one.x + one.width
        && one.y < other.y + other.height
        && other.y < one.y + one.height
}

fn within(inner: Rect, outer: Rect) -> bool {
    inner.x >= outer.x
        && inner.y >= outer.y
        && inner.x + inner.width <= outer.x + outer.width
        && inner.y + inner.height <= outer.y + outer.height
}

/// Every element that begins ends, in the right order.
fn is_well_formed(text: &str) -> bool {
    let mut open = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').unwrap();
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap().to_owned();
        match tag {
            _ if tag.starts_with('/') => {
                if open.pop() != Some(name) {
                    return false;
                }
            }
            _ if tag.ends_with('/') => {}
            _ => {
                if name == "style" {
                    rest = &rest[rest.find("</style>").unwrap()..];
                }
                open.push(name);
            }
        }
    }
    open.is_empty()
}

/// A datacenter: an image on each hypervisor, a cluster, many guests.
fn datacenter(guests: usize) -> Picture {
    let mut nodes = vec![node("pool/prod", 0, "", "datacenter", None)];
    let mut edges = Vec::new();
    for host in 1..=3 {
        let lane = format!("pve{host}");
        nodes.push(node(&format!("image/debian@{lane}"), 0, &lane, "datacenter", None));
        edges.push(("pool/prod".to_owned(), format!("image/debian@{lane}")));
        nodes.push(node(&format!("vm/cp-{host}"), 1, &lane, "lab", Some(Change::Update)));
    }
    for guest in 0..guests {
        let lane = format!("pve{}", guest % 3 + 1);
        let change = [None, Some(Change::Create), Some(Change::Replace), Some(Change::Delete)][guest % 4];
        let id = format!("vm/web-{guest}");
        nodes.push(node(&id, 2, &lane, if guest % 5 == 0 { "shop" } else { "web" }, change));
        edges.push((format!("image/debian@{lane}"), id.clone()));
        edges.push(("pool/prod".to_owned(), id));
    }
    Picture { layers: layers(), nodes, edges }
}

#[test]
fn three_hundred_objects_have_their_places() {
    let picture = datacenter(300);
    let plane = plane(&picture);
    assert_eq!(plane.boxes.len(), picture.nodes.len());
    for (place, one) in plane.boxes.iter().enumerate() {
        let band = plane.bands.iter().find(|(name, _)| *name == picture.layers[one.node.layer]).unwrap().1;
        let lane = plane.lanes.iter().find(|(name, _)| *name == one.node.lane).unwrap().1;
        assert!(within(one.rect, band) && within(one.rect, lane), "{one:?}");
        assert!(plane.boxes[..place].iter().all(|other| !overlap(one.rect, other.rect)), "{one:?}");
    }
    assert!(plane.width < 2_600 && plane.height < 1_600, "{} × {}", plane.width, plane.height);
    let order: Vec<&str> = plane.boxes.iter().map(|one| one.node.id.as_str()).collect();
    let at = |id: &str| order.iter().position(|one| *one == id).unwrap();
    assert!(
        at("vm/web-9") < at("vm/web-12") && at("vm/web-99") < at("vm/web-102"),
        "by number, not by letter"
    );
}

#[test]
fn edges_that_follow_from_others_are_not_drawn() {
    let image = svg(&datacenter(6));
    assert_eq!(image.matches("class=\"edge\"").count(), 3 + 6, "the pool is needed through the image");
    let circle = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    let edges = vec![circle("a", "b"), circle("b", "a"), circle("a", "nowhere"), circle("a", "a")];
    let nodes = ["a", "b"].map(|id| node(id, 0, "", "x", None)).to_vec();
    let image = svg(&Picture { layers: layers(), nodes, edges });
    assert_eq!(image.matches("class=\"edge\"").count(), 2, "{image}");
}

#[test]
fn changes_are_coloured_and_counted() {
    let image = svg(&datacenter(8));
    for (class, legend) in
        [("create", "create 2"), ("change", "change 3"), ("replace", "replace 2"), ("destroy", "destroy 2")]
    {
        assert!(
            image.contains(&format!("class=\"node {class}\"")) && image.contains(&format!(">{legend}<")),
            "{legend}"
        );
    }
    let unchanged = Picture { nodes: vec![node("a", 0, "", "x", None)], layers: layers(), edges: Vec::new() };
    assert!(!svg(&unchanged).contains("y=\"27\""), "no legend where nothing changes");
}

#[test]
fn a_page_needs_nothing_from_elsewhere() {
    let page = html(&datacenter(20), "prod <& co>");
    let outside = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!outside.contains("http") && !outside.contains("src=") && !outside.contains("@import"));
    assert!(page.contains("<title>prod &lt;&amp; co&gt;</title>"));
}

proptest! {
    #[test]
    fn any_picture_is_sound_and_drawn_the_same_in_any_order(
        given in prop::collection::vec((".{1,12}", 0..4_usize, 0..4_u8, 0..3_u8), 0..40),
        links in prop::collection::vec((0..40_usize, 0..40_usize), 0..60),
    ) {
        let nodes: Vec<Node> = given
            .iter()
            .enumerate()
            .map(|(place, (name, layer, lane, stack))| {
                node(&format!("{name}{place}"), *layer, &format!("pve{lane}"), &format!("s{stack}<"), None)
            })
            .collect();
        let id = |place: usize| nodes.get(place).map_or("none".to_owned(), |node| node.id.clone());
        let edges: Vec<_> = links.iter().map(|(from, to)| (id(*from), id(*to))).collect();
        let mut picture = Picture { layers: layers(), nodes: nodes.clone(), edges };
        let image = svg(&picture);
        prop_assert!(is_well_formed(&image), "{image}");
        let plane = plane(&picture);
        for (place, one) in plane.boxes.iter().enumerate() {
            prop_assert!(plane.boxes[..place].iter().all(|other| !overlap(one.rect, other.rect)));
        }
        picture.nodes.reverse();
        picture.edges.reverse();
        prop_assert_eq!(svg(&picture), image);
    }
}
