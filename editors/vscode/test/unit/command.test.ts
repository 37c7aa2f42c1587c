import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";

import { CommandError, debuggerOf, failure, listRuns } from "../../src/command";

const FOLDER = mkdtempSync(join(tmpdir(), "daifu-command-"));
after(() => {
  rmSync(FOLDER, { recursive: true });
});

/** Writes a program that stands in for the interpreter. */
function interpreter(name: string, shell: string): string {
  const path = join(FOLDER, name);
  writeFileSync(path, `#!/bin/sh\n${shell}\n`);
  chmodSync(path, 0o755);
  return path;
}

describe("the command", () => {
  test("lists the runs, and is not taken from the folder one stands in", async () => {
    const python = interpreter("lists", `[ "$*" = "-P -m daifu_bc ps --json" ] && echo '[{"pid": 7}]'`);
    const runs = await listRuns(python);
    assert.deepEqual(
      runs.map(({ pid }) => pid),
      [7],
    );
  });

  test("has a run's debugger listen", async () => {
    const python = interpreter("debugs", `[ "$*" = "-P -m daifu_bc debug 7" ] && echo 127.0.0.1:4000`);
    assert.deepEqual(await debuggerOf(python, 7), { host: "127.0.0.1", port: 4000 });
  });

  test("says why it fails in its last line", async () => {
    const python = interpreter("fails", `echo "a warning" >&2; echo "daifu: there is no held run 7" >&2; exit 1`);
    await assert.rejects(debuggerOf(python, 7), (error: CommandError) => {
      assert.equal(error.message, "daifu: there is no held run 7");
      assert.equal(error.unusable, false);
      return true;
    });
  });

  test("tells an interpreter that is not there", async () => {
    const python = join(FOLDER, "nowhere");
    await assert.rejects(listRuns(python), (error: CommandError) => {
      assert.equal(error.message, `${python} cannot be run`);
      assert.equal(error.unusable, true);
      return true;
    });
  });

  test("tells an interpreter without daifu_bc", async () => {
    const python = interpreter("bare", `echo "$0: No module named daifu_bc" >&2; exit 1`);
    await assert.rejects(listRuns(python), (error: CommandError) => {
      assert.equal(error.message, `${python} has no daifu_bc`);
      assert.equal(error.unusable, true);
      return true;
    });
  });

  test("tells what took too long, and what said nothing", () => {
    assert.equal(failure("p", ["ps"], { killed: true, message: "" }, "").message, "`daifu ps` took too long");
    assert.equal(failure("p", ["ps"], { code: 3, message: "ended by 3" }, "\n").message, "ended by 3");
  });
});
