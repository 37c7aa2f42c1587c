/** A run that is not held has nothing to attach to yet: it is paused first, if that is wanted. */

import * as vscode from "vscode";

import { listRuns, pause } from "./command";
import { programOf, type Run } from "./runs";

/** Milliseconds between two looks whether a paused run stands. */
const LOOK = 300;

/**
 * Sees to it that a run can be attached to.
 *
 * @returns whether it can; not if it is not to be paused, or nobody has waited until it stood.
 */
export async function readyToAttach(python: string, pid: number): Promise<boolean> {
  const run = await find(python, pid);
  if (run === undefined || isReady(run)) {
    return true; // what is wrong with a number that is not listed, the command itself says best
  }
  const text = `${programOf(run.command)} runs, and is not held. Pause it at its next statement?`;
  if ((await vscode.window.showInformationMessage(text, { modal: true }, "Pause and Attach")) === undefined) {
    return false;
  }
  await pause(python, pid);
  const options = {
    location: vscode.ProgressLocation.Notification,
    title: `Waiting for ${programOf(run.command)} to come to its next statement`,
    cancellable: true,
  };
  return vscode.window.withProgress(options, (_progress, cancelled) => stands(python, pid, cancelled));
}

async function stands(python: string, pid: number, cancelled: vscode.CancellationToken): Promise<boolean> {
  while (!cancelled.isCancellationRequested) {
    const run = await find(python, pid);
    if (run === undefined || isReady(run)) {
      return true;
    }
    await new Promise((passed) => setTimeout(passed, LOOK));
  }
  return false;
}

async function find(python: string, pid: number): Promise<Run | undefined> {
  return (await listRuns(python)).find((run) => run.pid === pid);
}

function isReady({ state, debugger: address }: Run): boolean {
  return state === "held" || address !== undefined;
}
