/** Runs the command `daifu` by an interpreter that has it. */

import { execFile } from "node:child_process";
import { homedir } from "node:os";

import { parseAddress, parseRuns, type Address, type Run } from "./runs";

/** Milliseconds: a listing never waits for a run; one that is asked for something may be busy for a while. */
const LISTING = 20_000;
const ASKING = 90_000;

/** The command has failed; the message says why in the command's own words. */
export class CommandError extends Error {
  override readonly name = "CommandError";

  /** @param unusable whether the interpreter is at fault: it is not there, or has no daifu_bc. */
  constructor(
    message: string,
    readonly unusable: boolean,
  ) {
    super(message);
  }
}

export async function listRuns(python: string): Promise<Run[]> {
  return parseRuns(await daifu(python, ["ps", "--json"], LISTING));
}

/** Has a run's debugger listen, and returns where it does. */
export async function debuggerOf(python: string, pid: number): Promise<Address> {
  return parseAddress(await daifu(python, ["debug", String(pid)], ASKING));
}

/** Stops a running program at its next statement, and waits until it is held there. */
export async function pause(python: string, pid: number): Promise<void> {
  await daifu(python, ["pause", String(pid)], ASKING);
}

function daifu(python: string, words: readonly string[], milliseconds: number): Promise<string> {
  // -P: a file daifu_bc.py in the folder where the editor happens to have been started is not it.
  const command = ["-P", "-m", "daifu_bc", ...words];
  const options = { cwd: homedir(), timeout: milliseconds, maxBuffer: 64 << 20, windowsHide: true };
  return new Promise((resolve, reject) => {
    execFile(python, command, options, (error, out, err) => {
      if (error === null) {
        resolve(out);
      } else {
        reject(failure(python, words, error, err));
      }
    });
  });
}

/** What the end of a process is known by. */
interface Ended {
  readonly message: string;
  readonly code?: unknown;
  readonly killed?: unknown;
}

/** Says why the command has failed: its last line on standard error, or what is wrong with the interpreter. */
export function failure(python: string, words: readonly string[], error: Ended, err: string): CommandError {
  const said = err.trim();
  if (error.code === "ENOENT" || error.code === "EACCES") {
    return new CommandError(`${python} cannot be run`, true);
  }
  if (/No module named '?daifu_bc'?/.test(said)) {
    return new CommandError(`${python} has no daifu_bc`, true);
  }
  if (error.killed === true) {
    return new CommandError(`\`daifu ${words.join(" ")}\` took too long`, false);
  }
  return new CommandError(said === "" ? error.message : (said.split("\n").at(-1) ?? ""), false);
}
