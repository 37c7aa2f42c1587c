/** The words of a hold: how they are listed, and what has to be asked for before they can be said. */

import { isObject, textOf } from "./runs";

/** A word as the run tells of it. */
export interface Known {
  readonly name: string;
  /** All forms of it. */
  readonly usage: readonly string[];
  readonly summary: string;
}

/** A line of the list to choose from. */
export interface Choice {
  /** What is said, but for the answer. */
  readonly words: string;
  readonly summary: string;
  /** What is asked for first; without it the words are said as they are. */
  readonly ask: Question | undefined;
}

export interface Question {
  readonly prompt: string;
  readonly placeHolder: string;
  /** Whether an empty answer will do. */
  readonly optional: boolean;
}

/** The words that change where the run is, so that it matters in which frame they are said. */
const DECIDING = new Set(["pass", "skip", "goto", "restart", "return", "raise"]);

/** Forms that take no argument and deserve a line of their own. */
const FORMS: Readonly<Record<string, readonly string[]>> = {
  skip: ["skip body", "skip loop"],
  raise: ["raise --always"],
  surgery: ["surgery --check"],
};

const QUESTIONS: Readonly<Record<string, Question>> = {
  goto: question("The line at which the run goes on", "22"),
  return: question("The value that the function returns, an expression; None if empty", "0.0", true),
  raise: question("The exception to raise; the one that is held, if empty", "ValueError('no data')", true),
  action: question("Python to run in the selected frame", "batch = batch[:16]"),
  frame: question("The frame's number, or its function's name", "train"),
  hold: question("The hold's number", "2"),
  p: question("The expression to print", "len(batch)"),
  pp: question("The expression to print", "batch"),
  exit: question("The process's exit code; 1 if empty", "1", true),
};

function question(prompt: string, placeHolder: string, optional = false): Question {
  return { prompt, placeHolder, optional };
}

export function parseWords(found: unknown): Known[] {
  return Array.isArray(found) ? found.map(parseWord).filter((word) => word !== undefined) : [];
}

function parseWord(found: unknown): Known | undefined {
  if (!isObject(found) || textOf(found.name) === "") {
    return undefined;
  }
  const forms: unknown[] = Array.isArray(found.usage) ? found.usage : [found.usage];
  return {
    name: textOf(found.name),
    usage: forms.filter((form) => typeof form === "string"),
    summary: textOf(found.summary),
  };
}

/** Returns what can be said, in the run's own order. */
export function choicesFor(known: readonly Known[]): Choice[] {
  return known.flatMap((word) => [choiceFor(word), ...formsOf(word)]);
}

function choiceFor({ name, usage, summary }: Known): Choice {
  return { words: name, summary, ask: QUESTIONS[name] ?? questionFrom(name, usage) };
}

function formsOf({ name, usage }: Known): Choice[] {
  const forms = (FORMS[name] ?? []).filter((form) => usage.some((known) => known.startsWith(form)));
  return forms.map((words) => ({ words, summary: "", ask: undefined }));
}

/** Asks for what the forms of a word have behind it, if none of them is the word alone. */
function questionFrom(name: string, usage: readonly string[]): Question | undefined {
  const forms = usage.filter((form) => !form.includes("<<"));
  return forms.length === 0 || forms.some((form) => withoutOptional(form) === name)
    ? undefined
    : question(forms.join(", or "), "");
}

function withoutOptional(form: string): string {
  return form.replaceAll(/\s*\[[^\]]*\]/g, "");
}

/** Returns a word as a button says it, whether or not the run has told of its words. */
export function choiceNamed(name: string): Choice {
  return { words: name, summary: "", ask: QUESTIONS[name] };
}

export function isDeciding(words: string): boolean {
  return DECIDING.has(words.split(" ", 1)[0] ?? "");
}

/** Returns the line to say for a choice and the answer to its question. */
export function lineFor(choice: Choice, answer: string): string {
  return `${choice.words} ${answer.trim()}`.trim();
}

/** Returns what is wrong with an answer to a question; undefined if it will do. */
export function faultOf({ optional }: Question, answer: string): string | undefined {
  const given = answer.trim();
  if (given === "" && !optional) {
    return "Something has to stand here.";
  }
  return given.includes("\n") ? "One line only." : undefined;
}
