import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { choiceNamed, choicesFor, faultOf, isDeciding, lineFor, parseWords, type Known, type Question } from "../../src/words";

function word(name: string, ...usage: string[]): Known {
  return { name, usage, summary: `what ${name} does` };
}

function questionOf(name: string): Question {
  const { ask } = choiceNamed(name);
  assert.ok(ask, name);
  return ask;
}

describe("the words that a run tells of", () => {
  test("are taken, and what makes no sense is left out", () => {
    const found = [{ name: "up", usage: ["up", "up N"], summary: "further out" }, { name: "why", usage: "why" }, {}, "pass", null];
    assert.deepEqual(parseWords(found), [
      { name: "up", usage: ["up", "up N"], summary: "further out" },
      { name: "why", usage: ["why"], summary: "" },
    ]);
    assert.deepEqual(parseWords(undefined), []);
  });
});

describe("the list of words", () => {
  test("is in the run's order, with a line for some forms that it has", () => {
    const known = [
      word("pass", "pass"),
      word("skip", "skip", "skip body"),
      word("surgery", "surgery", "surgery NAME <<END ... END", "surgery --check ..."),
    ];
    const said = choicesFor(known).map(({ words, summary }) => [words, summary]);
    assert.deepEqual(said, [
      ["pass", "what pass does"],
      ["skip", "what skip does"],
      ["skip body", ""],
      ["surgery", "what surgery does"],
      ["surgery --check", ""],
    ]);
  });

  test("asks for what a word cannot do without, also one that we do not know", () => {
    const known = [word("dance", "dance STEP", "dance <<END ... END"), word("sing", "sing [SONG]"), word("hum", "hum", "hum TUNE")];
    const asked = choicesFor(known).map(({ ask }) => ask?.prompt);
    assert.deepEqual(asked, ["dance STEP", undefined, undefined]);
  });
});

describe("what is said", () => {
  test("is the word with the answer behind it", () => {
    assert.equal(lineFor(choiceNamed("return"), " 3 + 4 "), "return 3 + 4");
    assert.equal(lineFor(choiceNamed("raise"), ""), "raise");
    assert.equal(lineFor(choiceNamed("skip loop"), ""), "skip loop");
  });

  test("depends on the frame if the run goes on by it", () => {
    assert.deepEqual(["pass", "skip loop", "goto 3", "return"].map(isDeciding), [true, true, true, true]);
    assert.deepEqual(["action pass", "surgery", "passed = 1", "where", ""].map(isDeciding), [false, false, false, false, false]);
  });
});

describe("an answer", () => {
  test("may be empty where the word can do without", () => {
    assert.equal(faultOf(questionOf("return"), ""), undefined);
    assert.equal(faultOf(questionOf("goto"), " "), "Something has to stand here.");
  });

  test("is one line", () => {
    assert.equal(faultOf(questionOf("action"), "a = 1\nb = 2"), "One line only.");
    assert.equal(faultOf(questionOf("action"), "a = 1"), undefined);
  });
});
