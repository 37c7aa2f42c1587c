import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { duration, heldSentence, isIn, parseAddress, parseRuns, programOf, runItems, Told, type Run } from "../../src/runs";

const HOLD = {
  number: 1,
  thread: "MainThread",
  file: "/home/ada/job/train.py",
  line: 22,
  function: "report",
  error: { type: "KeyError", text: "'acuracy'" },
  since: 1_700_000_000.5,
};
const HELD = {
  pid: 4711,
  identity: { boot: "b", started: 12 },
  command: ["/usr/bin/python3", "-m", "daifu_bc", "run", "train.py"],
  folder: "/home/ada/job",
  python: "3.11.7",
  started: 1_699_999_000,
  state: "held",
  pause_signal: "SIGUSR1",
  hold: HOLD,
  debugger: null,
  socket: "/run/user/1000/daifu_bc/4711.sock",
};
const RUNNING = { ...HELD, pid: 12, state: "running", hold: null, debugger: { host: "127.0.0.1", port: 5678 } };

function runs(...found: unknown[]): Run[] {
  return parseRuns(JSON.stringify(found));
}

describe("what `daifu ps --json` prints", () => {
  test("is taken", () => {
    const [held, running] = runs(HELD, RUNNING);
    assert.equal(held?.pid, 4711);
    assert.equal(held.state, "held");
    assert.deepEqual(held.hold, HOLD);
    assert.equal(held.debugger, undefined);
    assert.equal(running?.state, "running");
    assert.equal(running.hold, undefined);
    assert.deepEqual(running.debugger, { host: "127.0.0.1", port: 5678 });
  });

  test("may be empty, or know more than we do", () => {
    assert.deepEqual(runs(), []);
    assert.equal(runs({ ...HELD, mood: "grey" }).length, 1);
  });

  test("is left out where it makes no sense", () => {
    assert.deepEqual(runs(null, 3, [], {}, { pid: "1" }, { pid: -1 }, { pid: 1.5 }), []);
    assert.equal(runs({ pid: 5, state: "held" })[0]?.state, "running");
    assert.equal(runs({ ...HELD, debugger: { host: "", port: 1 } })[0]?.debugger, undefined);
    assert.equal(runs({ ...HELD, debugger: { host: "h", port: 70_000 } })[0]?.debugger, undefined);
    assert.deepEqual(runs({ ...HELD, command: "train.py" })[0]?.command, []);
  });

  test("is refused if it is something else", () => {
    assert.throws(() => parseRuns("PID  STATE\n"), /did not print JSON: PID {2}STATE/);
    assert.throws(() => parseRuns("{}"), /did not print a list/);
  });
});

describe("an address", () => {
  test("is a line", () => {
    assert.deepEqual(parseAddress("127.0.0.1:40123\n"), { host: "127.0.0.1", port: 40123 });
    assert.deepEqual(parseAddress("[::1]:80"), { host: "::1", port: 80 });
  });

  for (const text of ["", "40123", "localhost:", "localhost:0", "localhost:65536", "Debugger listens at 127.0.0.1:1", "h:1\nh:2"]) {
    test(`is not ${JSON.stringify(text)}`, () => {
      assert.throws(() => parseAddress(text), /printed no address/);
    });
  }
});

describe("the list to choose from", () => {
  test("has the newest hold at the top and what runs at the end", () => {
    const older = { ...HELD, pid: 9, hold: { ...HOLD, since: HOLD.since - 60 } };
    const items = runItems(runs(RUNNING, older, HELD), HOLD.since + 90);
    assert.deepEqual(
      items.map(({ run }) => run.pid),
      [4711, 9, 12],
    );
    assert.equal(items[0]?.label, "$(debug-pause) train.py");
    assert.equal(items[0].description, "process 4711");
    assert.equal(items[0].detail, "KeyError: 'acuracy' at train.py:22, in report (for 1 min 30 s)");
    assert.equal(items[2]?.label, "$(debug-start) train.py");
    assert.equal(items[2].detail, "running");
  });

  test("does without the exception's text", () => {
    assert.equal(heldSentence({ ...HOLD, error: { type: "StopIt", text: "" } }), "StopIt at train.py:22, in report");
  });
});

describe("a program's name", () => {
  const names: [string, string][] = [
    ["/usr/bin/python3 -m daifu_bc run train.py --epochs 90", "train.py --epochs 90"],
    ["/usr/bin/python3 /home/ada/.venv/bin/daifu run --hold-timeout 60 jobs/train.py", "train.py"],
    ["python -X dev -m daifu_bc run --attach -m package.train -m 3", "package.train -m 3"],
    ["python -X dev train.py run", "train.py run"],
    ["python -m package.train", "package.train"],
    ["python train", "train"],
    ["python", "python"],
    ["", ""],
  ];
  for (const [command, name] of names) {
    test(`of \`${command}\` is \`${name}\``, () => {
      assert.equal(programOf(command.split(" ")), name);
    });
  }
});

describe("a workspace", () => {
  test("has what runs in it, and what has crashed in it", () => {
    const [run] = runs({ ...HELD, folder: "/scratch", hold: { ...HOLD, file: "/home/ada/job/train.py" } });
    assert.ok(run);
    assert.ok(isIn(run, ["/scratch"]));
    assert.ok(isIn(run, ["/other", "/home/ada/job/"]));
    assert.ok(!isIn(run, ["/home/ada/jo", "/scratch/deeper"]));
    assert.ok(!isIn(run, []));
  });
});

describe("a notice", () => {
  const pids = (found: Run[]): number[] => found.map(({ pid }) => pid);

  test("comes once for each hold", () => {
    const told = new Told();
    assert.deepEqual(pids(told.fresh(runs(RUNNING))), []);
    assert.deepEqual(pids(told.fresh(runs(RUNNING, HELD))), [4711]);
    assert.deepEqual(pids(told.fresh(runs(RUNNING, HELD))), []);
    assert.deepEqual(pids(told.fresh(runs({ ...HELD, hold: { ...HOLD, number: 2 } }))), [4711]);
  });

  test("comes for another process of the same number", () => {
    const told = new Told();
    told.fresh(runs(HELD));
    assert.deepEqual(pids(told.fresh(runs({ ...HELD, identity: { boot: "b", started: 13 } }))), [4711]);
  });
});

test("a duration is in the two largest units", () => {
  const seconds = [-1, 0, 59.9, 60, 61, 3_600, 3_725, 86_400, 90_000, 176_400];
  const texts = ["0 s", "0 s", "59 s", "1 min", "1 min 1 s", "1 h", "1 h 2 min", "1 d", "1 d 1 h", "2 d 1 h"];
  assert.deepEqual(seconds.map(duration), texts);
});
