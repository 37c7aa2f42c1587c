/** A VS Code that is served to browsers, with the packaged extension and nothing else installed. */

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { cpSync, createWriteStream, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { endGroup, EXTENSION, freePort, LEFTOVERS, PYTHON, REPOSITORY, until, VSCODE } from "./places";

/** An interpreter is a matter of the machine, and not of the user, to whom several may belong. */
const MACHINE = { "daifu.python": PYTHON };
const USER = {
  "daifu.notifyWhenHeld": "workspace",
  "editor.acceptSuggestionOnEnter": "off",
  "editor.autoClosingBrackets": "never",
  "editor.autoClosingQuotes": "never",
  "editor.autoIndent": "none",
  "editor.minimap.enabled": false,
  "editor.quickSuggestions": { other: "off", comments: "off", strings: "off" },
  "extensions.ignoreRecommendations": true,
  "files.autoSave": "off",
  "git.enabled": false,
  "remote.autoForwardPorts": false,
  "security.workspace.trust.enabled": false,
  "telemetry.telemetryLevel": "off",
  "window.commandCenter": false,
  "window.menuBarVisibility": "hidden",
  "workbench.colorTheme": "Default Light Modern",
  "workbench.layoutControl.enabled": false,
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
};

export class Server {
  private constructor(
    private readonly root: string,
    private readonly process: ChildProcess,
    readonly environment: NodeJS.ProcessEnv,
    readonly url: string,
  ) {}

  /** The folder that is opened. */
  get workspace(): string {
    return join(this.root, "job");
  }

  static async start(): Promise<Server> {
    const root = mkdtempSync(join(tmpdir(), "daifu-vscode-"));
    const [home, runtime, data] = [join(root, "home"), join(root, "runtime"), join(root, "data")];
    for (const folder of [home, join(data, "User"), join(data, "Machine"), join(root, "job"), join(root, "extensions")]) {
      mkdirSync(folder, { recursive: true });
    }
    mkdirSync(runtime, { mode: 0o700 });
    writeFileSync(join(data, "User", "settings.json"), JSON.stringify(USER));
    writeFileSync(join(data, "Machine", "settings.json"), JSON.stringify(MACHINE));
    const environment = {
      ...process.env,
      HOME: home,
      PYTHONPATH: process.env.PYTHONPATH ?? REPOSITORY,
      XDG_RUNTIME_DIR: runtime,
      XDG_STATE_HOME: join(root, "state"),
    };
    const port = await freePort();
    const folders = ["--user-data-dir", data, "--extensions-dir", join(root, "extensions")];
    const command = [join(VSCODE, "node_modules", "code-server"), ...folders];
    execFileSync(process.execPath, [...command, "--install-extension", join(EXTENSION, "daifu.vsix")], { env: environment });
    const options = ["--auth", "none", "--bind-addr", `127.0.0.1:${port}`];
    const quiet = ["--disable-telemetry", "--disable-update-check", "--disable-workspace-trust", "--disable-getting-started-override"];
    const started = spawn(process.execPath, [...command, ...options, ...quiet], {
      env: environment,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    if (LEFTOVERS !== "") {
      const log = createWriteStream(join(LEFTOVERS, "code-server.log"));
      started.stdout.pipe(log);
      started.stderr.pipe(log);
    } else {
      started.stdout.resume();
      started.stderr.resume();
    }
    const server = new Server(root, started, environment, `http://127.0.0.1:${port}`);
    try {
      await until("code-server to answer", () => server.answers());
    } catch (error) {
      await server.close();
      throw error;
    }
    return server;
  }

  private async answers(): Promise<boolean> {
    try {
      return (await fetch(`${this.url}/healthz`)).ok;
    } catch {
      return false;
    }
  }

  async close(): Promise<void> {
    await endGroup(this.process);
    if (LEFTOVERS !== "") {
      cpSync(join(this.root, "data", "logs"), join(LEFTOVERS, "logs"), { recursive: true });
    }
    rmSync(this.root, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }
}
