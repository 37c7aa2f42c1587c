import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { nextPlace, NOT_HELD, parseAnswer, parseStatus } from "../../src/status";

const NEXT = { path: "/job/train.py", line: 22, text: "    text += before" };
const WORDS = [{ name: "goto", usage: ["goto LINE"], summary: "go on there" }];
const HELD = {
  held: true,
  hold: 2,
  thread: "MainThread",
  next: { ...NEXT, new: true },
  error: { type: "KeyError", text: "'acuracy'" },
  refused: "",
  words: WORDS,
};

describe("a status", () => {
  test("of a held run says what comes next", () => {
    const status = parseStatus(HELD);
    assert.deepEqual(status, {
      held: true,
      hold: 2,
      next: { ...NEXT, fresh: true },
      error: "KeyError: 'acuracy'",
      refused: "",
      words: WORDS,
    });
    assert.equal(nextPlace(status), "train.py:22");
  });

  test("may come without a next line, and says why", () => {
    const status = parseStatus({ ...HELD, next: null, error: "KeyError", refused: "it has ended" });
    assert.equal(status.next, undefined);
    assert.equal(status.refused, "it has ended");
    assert.equal(status.error, "KeyError");
    assert.equal(nextPlace(status), "held");
  });

  test("without a path or a line has no next line", () => {
    assert.equal(parseStatus({ ...HELD, next: { path: "", line: 3, text: "" } }).next, undefined);
    assert.equal(parseStatus({ ...HELD, next: { path: "/a.py", line: 0, text: "" } }).next, undefined);
  });

  test("of anything else is: not held", () => {
    for (const found of [undefined, null, [], "held", {}, { held: false, hold: 1 }, { held: "true" }]) {
      assert.deepEqual(parseStatus(found), NOT_HELD);
    }
  });
});

describe("an answer", () => {
  test("is what was said, why it failed, whether it decided, and how the run is held then", () => {
    const answer = parseAnswer({ result: "a", variablesReference: 0, daifu: { failed: "b", decided: false, status: HELD } });
    assert.deepEqual(answer, { text: "a", failed: "b", decided: false, status: parseStatus(HELD) });
  });

  test("of something that is not ours is its text", () => {
    assert.deepEqual(parseAnswer({ result: "a" }), { text: "a", failed: "", decided: false, status: undefined });
    assert.deepEqual(parseAnswer(null), { text: "", failed: "", decided: false, status: undefined });
  });
});
