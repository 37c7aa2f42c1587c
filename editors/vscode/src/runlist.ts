/** Knows the user's runs, and tells of those that are held. */

import * as vscode from "vscode";

import { CommandError, listRuns } from "./command";
import { interpreter } from "./interpreter";
import { heldSentence, isIn, programOf, Told, type Run } from "./runs";
import { DirectoryWatcher, runDirectories } from "./watching";

/** Milliseconds between two looks at the held runs: one that is killed leaves its file behind. */
const SPARING = 60_000;
/** More than so many notices at once are one. */
const MOST_NOTICES = 3;

type Scope = "all" | "workspace" | "none";

export class RunList implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private readonly told = new Told();
  private readonly settings: vscode.Disposable;
  private watcher: DirectoryWatcher | undefined;
  private timer: NodeJS.Timeout | undefined;
  private looking: Promise<void> | undefined;
  private again = false;
  private known: readonly Run[] = [];

  /**
   * @param isAttached whether a process is attached to already, so that nobody needs to be told of it.
   * @param attach attaches to a process.
   */
  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly isAttached: (pid: number) => boolean,
    private readonly attach: (pid?: number) => Promise<void>,
  ) {
    this.settings = vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("daifu")) {
        this.start();
      }
    });
    this.start();
  }

  dispose(): void {
    this.stop();
    this.settings.dispose();
    this.changed.dispose();
  }

  /** The runs that are held, as far as they were looked for. */
  get held(): readonly Run[] {
    return this.known.filter((run) => run.hold !== undefined);
  }

  private start(): void {
    this.stop();
    if (scope() === "none") {
      this.know([]);
      return;
    }
    const directories = runDirectories(process.env, process.getuid?.() ?? 0);
    this.log.debug(`watching ${directories.join(", ")}`);
    this.watcher = new DirectoryWatcher(directories, () => {
      void this.look();
    });
    void this.look();
  }

  private stop(): void {
    this.watcher?.dispose();
    this.watcher = undefined;
    clearTimeout(this.timer);
  }

  /** Lists the runs; what changes meanwhile is looked for afterwards. */
  async look(): Promise<void> {
    if (this.looking !== undefined) {
      this.again = true;
      return this.looking;
    }
    this.looking = this.list();
    try {
      await this.looking;
    } finally {
      this.looking = undefined;
    }
    if (this.again) {
      this.again = false;
      void this.look();
    }
  }

  private async list(): Promise<void> {
    const python = await interpreter();
    try {
      this.know(await listRuns(python));
    } catch (error) {
      // Nobody has asked for it: whoever lists the runs by hand is told.
      this.log[error instanceof CommandError && error.unusable ? "info" : "warn"](String(error));
      this.know([]);
    }
  }

  private know(runs: readonly Run[]): void {
    this.known = runs;
    this.changed.fire();
    const fresh = this.told.fresh(runs).filter((run) => !this.isAttached(run.pid) && isWanted(run));
    if (fresh.length > MOST_NOTICES) {
      void this.tell(`${fresh.length} of your runs are held.`, undefined);
    } else {
      for (const run of fresh) {
        const what = run.hold ? heldSentence(run.hold) : "";
        void this.tell(`${programOf(run.command)} is held: ${what} (process ${run.pid})`, run.pid);
      }
    }
    clearTimeout(this.timer);
    if (this.watcher !== undefined && this.held.length > 0) {
      this.timer = setTimeout(() => void this.look(), SPARING);
    }
  }

  private async tell(text: string, pid: number | undefined): Promise<void> {
    this.log.info(text);
    if ((await vscode.window.showInformationMessage(text, "Attach")) === "Attach") {
      await this.attach(pid);
    }
  }
}

function scope(): Scope {
  return vscode.workspace.getConfiguration("daifu").get<Scope>("notifyWhenHeld", "all");
}

function isWanted(run: Run): boolean {
  const folders = vscode.workspace.workspaceFolders?.map((folder) => folder.uri.fsPath) ?? [];
  return scope() === "all" || isIn(run, folders);
}
