"""`strata mcp`, asked by the client of the protocol's own kit, on a homelab on `strata sim`."""
import asyncio
import json
import os
import pathlib
import subprocess
import tempfile

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

STRATA = os.environ["STRATA_BIN"]


def text(result):
    return result.content[0].text


def failed(result):
    return getattr(result, "is_error", None) or getattr(result, "isError", False)


async def talk(repository):
    server = StdioServerParameters(command=STRATA, args=["-C", str(repository), "mcp"], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        assert {"validate", "plan", "drift", "explain", "graph", "show"} <= set(tools), tools
        assert not {"apply", "destroy", "adopt", "unlock"} & set(tools), tools
        await session.send_ping()

        valid = await session.call_tool("validate", {})
        assert not failed(valid) and text(valid).startswith("valid:"), valid
        plan = await session.call_tool("plan", {"stacks": ["pihole"]})
        assert not failed(plan) and "+ pihole/container/pihole" in text(plan), plan
        lines = await session.call_tool("plan", {"events": True})
        events = [json.loads(line)["event"] for line in text(lines).splitlines() if line.startswith("{")]
        assert "planned" in events and "summary" in events, events

        stack = next(repository.glob("stacks/**/stack.yaml"))
        stack.write_text(stack.read_text().replace("containers:", "contianers:"))
        wrong = await session.call_tool("validate", {})
        assert failed(wrong) and "error[unknown-key]" in text(wrong), wrong
        meaning = await session.call_tool("explain", {"code": "unknown-key"})
        assert "does not have" in text(meaning), meaning

        # Side by side, and in whatever order they end.
        several = await asyncio.gather(*(session.call_tool("graph", {}) for _ in range(4)), session.call_tool("explain", {}))
        assert all(failed(one) for one in several[:4]) and not failed(several[4]), several
    print("good: the protocol's own client gets on with it")


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        free = ["--port", "0", "--control-port", "0"]
        sim = subprocess.Popen([STRATA, "sim", *free], stdout=subprocess.PIPE, text=True)
        try:
            endpoint = json.loads(sim.stdout.readline())["proxmox"]["endpoint"]
            made = [STRATA, "init", "--example", "homelab", str(folder / "infra")]
            subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
            settings = folder / "infra" / "strata.yaml"
            settings.write_text(settings.read_text().replace("https://127.0.0.1:18006", endpoint))
            asyncio.run(asyncio.wait_for(talk(folder / "infra"), 120))
        finally:
            sim.kill()
            sim.wait()


main()
