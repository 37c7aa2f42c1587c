/** The debug type `daifu`: which run is attached to, and where its debug adapter listens. */

import * as vscode from "vscode";

import { CommandError, debuggerOf, listRuns } from "./command";
import { interpreter } from "./interpreter";
import { readyToAttach } from "./pausing";
import { runItems, type Address } from "./runs";

export const TYPE = "daifu";

type Configuration = vscode.DebugConfiguration & {
  pid?: number | string;
  host?: string;
  port?: number;
};

/** Starts a debug session for a process; for one that is chosen from the list, if none is given. */
export async function attach(pid?: number): Promise<void> {
  const chosen = pid ?? (await pickRun());
  if (chosen !== undefined) {
    const name = `daifu: process ${chosen}`;
    await vscode.debug.startDebugging(folder(), { type: TYPE, request: "attach", name, pid: chosen });
  }
}

function folder(): vscode.WorkspaceFolder | undefined {
  return vscode.workspace.workspaceFolders?.[0];
}

/** Lists the runs and returns the number of the process that is chosen; undefined if none is. */
export async function pickRun(): Promise<string | undefined> {
  const python = await interpreter();
  try {
    const items = runItems(await listRuns(python), Date.now() / 1000);
    if (items.length === 0) {
      void vscode.window.showInformationMessage("No program of yours runs under `daifu run` on this machine.");
      return undefined;
    }
    const options = { title: "Attach to a run", placeHolder: "held runs first", matchOnDescription: true, matchOnDetail: true };
    const chosen = await vscode.window.showQuickPick(items, options);
    return chosen && String(chosen.run.pid);
  } catch (error) {
    await showFailure(error);
    return undefined;
  }
}

/** Says why the runs cannot be listed, or one not be attached to, and where to put it right. */
async function showFailure(error: unknown): Promise<void> {
  const why = error instanceof Error ? error.message : String(error);
  if (error instanceof CommandError && error.unusable) {
    const choice = await vscode.window.showErrorMessage(`daifu: ${why}.`, "Choose the Interpreter…");
    if (choice !== undefined) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "daifu.python");
    }
  } else {
    void vscode.window.showErrorMessage(`daifu: ${why}`);
  }
}

/** Fills in what a configuration leaves out, and finds the adapter of its run. */
export class Configurations implements vscode.DebugConfigurationProvider {
  resolveDebugConfiguration(_folder: vscode.WorkspaceFolder | undefined, configuration: Configuration): Configuration {
    if (!configuration.type && !configuration.request && !configuration.name) {
      return { type: TYPE, request: "attach", name: "daifu: a held run", pid: "${command:pickRun}" };
    }
    return configuration.pid === undefined && configuration.port === undefined
      ? { ...configuration, pid: "${command:pickRun}" }
      : configuration;
  }

  async resolveDebugConfigurationWithSubstitutedVariables(
    _folder: vscode.WorkspaceFolder | undefined,
    configuration: Configuration,
  ): Promise<Configuration | undefined> {
    try {
      const address = await addressFor(configuration);
      return address && { ...configuration, ...address };
    } catch (error) {
      void showFailure(error);
      return undefined;
    }
  }
}

/** Returns where the adapter listens; undefined if the user does not want to attach after all. */
async function addressFor({ pid, host, port }: Configuration): Promise<Address | undefined> {
  if (port !== undefined) {
    return { host: host ?? "127.0.0.1", port };
  }
  const number = Number(pid);
  if (!Number.isInteger(number) || number < 1) {
    throw new Error(`${String(pid)} is no process`);
  }
  const python = await interpreter();
  return (await readyToAttach(python, number)) ? debuggerOf(python, number) : undefined;
}

/** Connects the editor straight to the adapter in the run. */
export class Adapters implements vscode.DebugAdapterDescriptorFactory {
  createDebugAdapterDescriptor(session: vscode.DebugSession): vscode.DebugAdapterDescriptor {
    const { host, port } = session.configuration as Configuration;
    return new vscode.DebugAdapterServer(port ?? 0, host);
  }
}

/** Returns the number of the process that a session is attached to, if it is known. */
export function pidOf(session: vscode.DebugSession): number | undefined {
  const { pid } = session.configuration as Configuration;
  return pid === undefined ? undefined : Number(pid);
}
