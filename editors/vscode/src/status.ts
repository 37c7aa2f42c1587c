/** What the debug adapter in a run adds to the protocol: how the run is held, and what words have answered. */

import { baseName, isObject, numberOf, textOf } from "./runs";
import { parseWords, type Known } from "./words";

/** The line at which the run would go on. */
export interface Next {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  /** Whether it is a line of what a surgery has put in. */
  readonly fresh: boolean;
}

export interface Status {
  readonly held: boolean;
  readonly hold: number;
  readonly next: Next | undefined;
  readonly error: string;
  /** Why the run cannot go on by `pass`; empty if it can. */
  readonly refused: string;
  readonly words: readonly Known[];
}

/** What words have answered. */
export interface Answer {
  readonly text: string;
  /** Why the last word did not do what was asked; empty if it did. */
  readonly failed: string;
  readonly decided: boolean;
  readonly status: Status | undefined;
}

export const NOT_HELD: Status = { held: false, hold: 0, next: undefined, error: "", refused: "", words: [] };

export function parseStatus(found: unknown): Status {
  if (!isObject(found) || found.held !== true) {
    return NOT_HELD;
  }
  return {
    held: true,
    hold: numberOf(found.hold),
    next: parseNext(found.next),
    error: parseError(found.error),
    refused: textOf(found.refused),
    words: parseWords(found.words),
  };
}

function parseNext(found: unknown): Next | undefined {
  if (!isObject(found) || textOf(found.path) === "" || numberOf(found.line) < 1) {
    return undefined;
  }
  return { path: textOf(found.path), line: numberOf(found.line), text: textOf(found.text), fresh: found.new === true };
}

function parseError(found: unknown): string {
  if (isObject(found)) {
    return [textOf(found.type), textOf(found.text)].filter((part) => part !== "").join(": ");
  }
  return textOf(found);
}

/** Takes the body of the answer to an `evaluate` in the context `daifu`. */
export function parseAnswer(found: unknown): Answer {
  const body = isObject(found) ? found : {};
  const ours = isObject(body.daifu) ? body.daifu : {};
  return {
    text: textOf(body.result),
    failed: textOf(ours.failed),
    decided: ours.decided === true,
    status: isObject(ours.status) ? parseStatus(ours.status) : undefined,
  };
}

/** Says in a few words where a held run would go on. */
export function nextPlace(status: Status): string {
  return status.next ? `${baseName(status.next.path)}:${status.next.line}` : "held";
}
