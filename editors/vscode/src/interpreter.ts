/** Which Python is asked for the runs. */

import * as vscode from "vscode";

/** The part of the Python extension's API that is used. */
interface PythonExtension {
  readonly environments?: {
    getActiveEnvironmentPath?(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment?(environment: {
      readonly path: string;
    }): Promise<{ readonly executable: { readonly uri: vscode.Uri | undefined } } | undefined>;
  };
}

/** Returns the interpreter of the setting `daifu.python`, else the Python extension's choice, else `python3`. */
export async function interpreter(): Promise<string> {
  const resource = vscode.workspace.workspaceFolders?.[0]?.uri;
  const set = vscode.workspace.getConfiguration("daifu", resource).get<string>("python", "").trim();
  if (set !== "") {
    return set.replaceAll("${workspaceFolder}", resource?.fsPath ?? "");
  }
  return (await chosenByExtension(resource)) ?? "python3";
}

async function chosenByExtension(resource: vscode.Uri | undefined): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension<PythonExtension | undefined>("ms-python.python");
  if (extension === undefined) {
    return undefined;
  }
  try {
    const environments = (await extension.activate())?.environments;
    const chosen = environments?.getActiveEnvironmentPath?.(resource);
    const resolved = chosen && (await environments?.resolveEnvironment?.(chosen));
    return resolved?.executable.uri?.fsPath;
  } catch {
    return undefined; // whatever is wrong there, it is not what the user is about
  }
}
