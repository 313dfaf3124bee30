"""A runner of Gitea's pipelines for the story: it takes jobs over the protocol of runners, and runs the scripts of their steps as they are.

Not Gitea's own runner, which no package registry has. What the pipelines of `strata init` use is all that it knows: `if` of a job that compares two values,
`env` and `run` of steps with values of the event and secrets, and what a step adds to the search path.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.request

from ruamel.yaml import YAML


class Runner:
    def __init__(self, url, token, label, environment):
        self.url, self.environment = url, environment
        self.headers = {"content-type": "application/json"}
        self.jobs = []
        runner = self.call("Register", {"name": "control", "token": token, "version": "1", "labels": [label]})["runner"]
        self.headers |= {"x-runner-uuid": runner["uuid"], "x-runner-token": runner["token"]}
        self.call("Declare", {"version": "1", "labels": [label]})
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def stop(self):
        self.stopped.set()
        self.thread.join()

    def call(self, method, body):
        request = urllib.request.Request(f"{self.url}/api/actions/runner.v1.RunnerService/{method}", method="POST", headers=self.headers, data=json.dumps(body).encode())
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or b"{}")

    def work(self):
        """One job after the other, as a runner of capacity 1 does."""
        while not self.stopped.is_set():
            task = self.call("FetchTask", {"tasksVersion": "0"}).get("task")
            if task:
                self.jobs.append(self.run(task))
            else:
                time.sleep(0.3)

    def run(self, task):
        payload = YAML(typ="safe").load(base64.b64decode(task["workflowPayload"]))
        [(name, job)] = payload["jobs"].items()
        known = {"github": task["context"], "secrets": task.get("secrets", {})}
        lines = []
        if not holds(job.get("if"), known):
            result = "RESULT_SKIPPED"
        else:
            result = "RESULT_SUCCESS" if self.steps(job, known, lines) else "RESULT_FAILURE"
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        rows = [{"time": now, "content": line} for line in lines]
        self.call("UpdateLog", {"taskId": task["id"], "index": 0, "rows": rows, "noMore": True})
        steps = [{"id": place, "result": result, "startedAt": now, "stoppedAt": now, "logLength": 0} for place, _ in enumerate(job["steps"])]
        self.call("UpdateTask", {"state": {"id": task["id"], "result": result, "startedAt": now, "stoppedAt": now, "steps": steps}})
        return {"workflow": payload["name"], "job": name, "result": result, "log": "\n".join(lines), "secrets": known["secrets"], "scripts": [step["run"] for step in job["steps"]]}

    def steps(self, job, known, lines):
        folder = tempfile.mkdtemp()
        github = known["github"]
        paths = os.path.join(folder, "paths")
        work = os.path.join(folder, "work")
        os.mkdir(work)
        open(paths, "w").close()
        try:
            for step in job["steps"]:
                added = open(paths).read().split("\n")[:-1]
                variables = {
                    **self.environment,
                    "CI": "true",
                    "GITHUB_ACTIONS": "true",
                    "GITEA_ACTIONS": "true",
                    "GITHUB_SERVER_URL": github["server_url"],
                    "GITHUB_REPOSITORY": github["repository"],
                    "GITHUB_SHA": github["sha"],
                    "GITHUB_REF": github["ref"],
                    "GITHUB_PATH": paths,
                    "PATH": ":".join([*reversed(added), self.environment["PATH"]]),
                    **{name: filled(str(value), known) for name, value in (step.get("env") or {}).items()},
                }
                command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", filled(step["run"], known)]
                done = subprocess.run(command, cwd=work, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                lines += [f"== {step['name']}", *done.stdout.splitlines()]
                if done.returncode != 0:
                    lines.append(f"exit code {done.returncode}")
                    return False
            return True
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def value(path, known):
    found = known
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if found is None:
        return ""
    return str(int(found)) if isinstance(found, float) else str(found)


def filled(text, known):
    return re.sub(r"\$\{\{ *([\w.]+) *\}\}", lambda match: value(match[1], known), text)


def holds(condition, known):
    if not condition:
        return True
    left, sign, right = re.fullmatch(r"(?:\$\{\{ *)?([\w.]+) (==|!=) ([\w.]+)(?: *\}\})?", condition).groups()
    return (value(left, known) == value(right, known)) == (sign == "==")
