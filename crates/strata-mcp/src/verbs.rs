//! The verbs of Strata that only look.

use crate::tool::{Argument, Form, Tool};

const fn argument(
    name: &'static str,
    form: Form,
    option: Option<&'static str>,
    help: &'static str,
) -> Argument {
    Argument { name, form, option, required: false, help }
}

const fn needed(name: &'static str, option: Option<&'static str>, help: &'static str) -> Argument {
    Argument { name, form: Form::Text, option, required: true, help }
}

const STACKS: Argument = argument(
    "stacks",
    Form::Texts,
    None,
    "stacks by name or path, `layer:NAME`, addresses such as `web/vm/db` or patterns such as `web/vm/*`; all without any",
);
const ENVIRONMENT: Argument =
    argument("environment", Form::Text, Some("--environment"), "the environment whose overlay is used");
const EVENTS: Argument = argument(
    "events",
    Form::Flag,
    Some("--json"),
    "one JSON object a line, as docs/json.md says, and no text",
);
const DETAILS: Argument =
    argument("details", Form::Flag, Some("--verbose"), "says more, such as every field");

/// Every tool that an agent has.
pub static TOOLS: [Tool; 10] = [
    Tool {
        name: "validate",
        verb: &["validate"],
        arguments: &[EVENTS],
        help: "Checks every file of the repository in every environment, and lists all mistakes with their places and hints. Needs no key and no network.",
    },
    Tool {
        name: "explain",
        verb: &["explain"],
        arguments: &[argument(
            "code",
            Form::Text,
            None,
            "the code in brackets of a message, such as `unknown-key`; without it, all codes",
        )],
        help: "Says what the code of a message means, with files that cause it, and the way out.",
    },
    Tool {
        name: "reference",
        verb: &["schema", "--markdown"],
        arguments: &[needed(
            "kind",
            None,
            "`strata`, `stack`, `cluster`, `nodes`, `environment` or `hypervisor`",
        )],
        help: "Every key of a kind of file of the repository: what it takes and what it is for.",
    },
    Tool {
        name: "graph",
        verb: &["graph"],
        arguments: &[STACKS, ENVIRONMENT, EVENTS],
        help: "What the repository describes and what depends on what, as Mermaid. Asks nothing remote.",
    },
    Tool {
        name: "plan",
        verb: &["plan"],
        arguments: &[STACKS, ENVIRONMENT, DETAILS, EVENTS],
        help: "What an apply of the files as they are now would do to the datacenter, and what stands in its way. Changes nothing.",
    },
    Tool {
        name: "drift",
        verb: &["drift"],
        arguments: &[STACKS, ENVIRONMENT, EVENTS],
        help: "What somebody changed in the datacenter since the last apply.",
    },
    Tool {
        name: "show",
        verb: &["show"],
        arguments: &[needed("file", None, "a file from `strata plan -o`"), DETAILS, EVENTS],
        help: "What a saved plan does and what it is bound to.",
    },
    Tool {
        name: "changed",
        verb: &["review", "changed"],
        arguments: &[
            needed("base", Some("--base"), "the commit or branch that is compared with"),
            argument(
                "head",
                Form::Text,
                Some("--head"),
                "the commit that is looked at; the checked-out one without it",
            ),
            EVENTS,
        ],
        help: "Which stacks a commit range can change, in which environments, and why.",
    },
    Tool {
        name: "inventory",
        verb: &["inventory", "--format=json"],
        arguments: &[ENVIRONMENT],
        help: "Guests and machines with their addresses, groups and roles.",
    },
    Tool {
        name: "doctor",
        verb: &["doctor"],
        arguments: &[ENVIRONMENT, EVENTS],
        help: "What is missing before an apply can work, and what fixes it.",
    },
];
