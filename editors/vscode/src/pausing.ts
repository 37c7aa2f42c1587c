/** A run that is not held has nothing to attach to yet: it is paused first, if that is wanted. */

import * as vscode from "vscode";

import { listRuns, pause } from "./command";
import { programOf } from "./runs";

/**
 * Sees to it that a run can be attached to.
 *
 * @returns whether it can; not if it is not to be paused.
 * @throws CommandError if it does not come to a statement at which it can be paused.
 */
export async function readyToAttach(python: string, pid: number): Promise<boolean> {
  const run = (await listRuns(python)).find((one) => one.pid === pid);
  if (run === undefined || run.state === "held" || run.debugger !== undefined) {
    return true; // what is wrong with a number that is not listed, the command itself says best
  }
  const name = programOf(run.command);
  const text = `${name} runs, and is not held. Pause it at its next statement?`;
  if ((await vscode.window.showInformationMessage(text, { modal: true }, "Pause and Attach")) === undefined) {
    return false;
  }
  const title = `Waiting for ${name} to come to its next statement`;
  await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title }, () => pause(python, pid));
  return true;
}
