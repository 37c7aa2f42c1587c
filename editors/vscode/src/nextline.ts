/** Marks the lines at which the held runs would go on. */

import * as vscode from "vscode";

import type { Next } from "./status";

export class NextLines implements vscode.Disposable {
  private readonly mark = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("daifu.nextLineBackground"),
    overviewRulerColor: new vscode.ThemeColor("daifu.nextLineForeground"),
    overviewRulerLane: vscode.OverviewRulerLane.Full,
    after: {
      color: new vscode.ThemeColor("daifu.nextLineForeground"),
      fontStyle: "italic",
      margin: "0 0 0 3em",
    },
  });
  private readonly editors: vscode.Disposable;
  private lines: readonly Next[] = [];

  constructor() {
    this.editors = vscode.window.onDidChangeVisibleTextEditors(() => {
      this.draw();
    });
  }

  dispose(): void {
    this.editors.dispose();
    this.mark.dispose();
  }

  show(lines: readonly Next[]): void {
    this.lines = lines;
    this.draw();
  }

  private draw(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      const { uri, lineCount } = editor.document;
      const here = this.lines.filter(({ path, line }) => uri.scheme === "file" && uri.fsPath === path && line <= lineCount);
      editor.setDecorations(
        this.mark,
        here.map(({ line, fresh }) => ({
          range: editor.document.lineAt(line - 1).range,
          renderOptions: { after: { contentText: fresh ? "◂ pass goes on here, in the new code" : "◂ pass goes on here" } },
        })),
      );
    }
  }
}

/** Opens the file of a line and brings the line into view. */
export async function reveal({ path, line }: Next): Promise<void> {
  const editor = await vscode.window.showTextDocument(vscode.Uri.file(path));
  const at = new vscode.Position(Math.min(line, editor.document.lineCount) - 1, 0);
  editor.selection = new vscode.Selection(at, at);
  editor.revealRange(new vscode.Range(at, at), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}
