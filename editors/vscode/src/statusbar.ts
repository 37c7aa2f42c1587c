/** The entry in the status bar: how many runs are held, or where the one would go on that is looked at. */

import * as vscode from "vscode";

import type { RunList } from "./runlist";
import { heldSentence, programOf } from "./runs";
import type { Sessions } from "./sessions";
import { nextPlace } from "./status";

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("daifu.runs", vscode.StatusBarAlignment.Left, 10);

  constructor(
    private readonly runs: RunList,
    private readonly sessions: Sessions,
  ) {
    this.item.name = "daifu";
  }

  dispose(): void {
    this.item.dispose();
  }

  update(): void {
    const { active } = this.sessions;
    const { held } = this.runs;
    if (active !== undefined) {
      this.show(`next: ${nextPlace(active)}`, "daifu.more", active.error, active.next?.text.trim() ?? "");
    } else if (held.length > 0) {
      const lines = held.map(({ command, hold }) => `${programOf(command)}: ${hold ? heldSentence(hold) : ""}`);
      this.show(`${held.length} held`, "daifu.attach", ...lines);
    } else {
      this.item.hide();
    }
  }

  private show(text: string, command: string, ...lines: string[]): void {
    this.item.text = `$(debug-alt) daifu ${text}`;
    this.item.command = command;
    this.item.tooltip = lines.filter((line) => line !== "").join("\n");
    this.item.show();
  }
}
