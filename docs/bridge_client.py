#!/usr/bin/env python3
"""How a Python program uses openclawssy's records: one JSON line each way.

    python3 docs/bridge_client.py openclawssy bridge --agent demo
"""
import json
import subprocess
import sys


class BridgeError(Exception):
    pass


class Bridge:
    """Calls verbs of one adapter of `openclawssy bridge`."""

    def __init__(self, command, adapter="memory"):
        self.adapter, self.calls = adapter, 0
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def __call__(self, verb, *args):
        self.calls += 1
        request = {"id": self.calls, "adapter": self.adapter, "verb": verb, "args": args}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise BridgeError("the bridge has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise BridgeError("{class}: {message}".format(**answer["error"]))
        return answer["result"]

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


def main():
    memory = Bridge(sys.argv[1:] or ["openclawssy", "bridge"])
    print(memory("profile")["memory_profile"])
    memory("put", "workflow", "workflow.checkpoint", "cp-1", {"step": 1, "tags": ["<a>", "é"]}, 3600, {"tags": ["billing"]})
    print(memory("get", "workflow", "workflow.checkpoint", "cp-1")["record"]["payload"])
    print([item["record_id"] for item in memory("list", "workflow", None, None, None, {"tags_any": ["billing"]})["items"]])
    try:
        memory("put", "nope", "k", "i", {})
    except BridgeError as refusal:
        print(refusal)
    return memory.close()


if __name__ == "__main__":
    sys.exit(main())
