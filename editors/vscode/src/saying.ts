/** Says the words of a hold: by a button, from the palette, or chosen from a list. */

import * as vscode from "vscode";

import { reveal } from "./nextline";
import { isObject, numberOf, textOf } from "./runs";
import type { Sessions } from "./sessions";
import { choiceNamed, choicesFor, faultOf, isDeciding, lineFor, type Choice } from "./words";

/** Milliseconds for which the status bar shows an answer. */
const SHOWN = 8_000;

export class Speaker {
  constructor(private readonly sessions: Sessions) {}

  /** Asks for what is needed, and says it. */
  async word(choice: Choice): Promise<void> {
    if (choice.words === "surgery" && !(await readyForSurgery())) {
      return;
    }
    const answer = choice.ask === undefined ? "" : await ask(choice);
    if (answer !== undefined) {
      await this.say(lineFor(choice, answer));
    }
  }

  async named(name: string): Promise<void> {
    await this.word(choiceNamed(name));
  }

  async atCursor(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) {
      await this.named("goto");
    } else {
      await this.say(`goto ${editor.selection.active.line + 1}`);
    }
  }

  async choose(): Promise<void> {
    const choices = choicesFor(this.sessions.active?.words ?? []);
    const items = choices.map((choice) => ({
      label: choice.ask === undefined ? choice.words : `${choice.words}…`,
      description: choice.summary,
      choice,
    }));
    const options = { title: "What the held run is to do", matchOnDescription: true };
    const chosen = await vscode.window.showQuickPick(items, options);
    if (chosen !== undefined) {
      await this.word(chosen.choice);
    }
  }

  async showNext(): Promise<void> {
    const next = this.sessions.active?.next;
    if (next !== undefined) {
      await reveal(next);
    }
  }

  private async say(line: string): Promise<void> {
    try {
      const frame = await frameFor(line);
      if (frame === "none") {
        return;
      }
      const { text, failed, decided } = await this.sessions.say(line, frame);
      vscode.debug.activeDebugConsole.appendLine(`daifu> ${line}\n${text}`);
      if (failed !== "") {
        void vscode.window.showWarningMessage(`daifu: ${failed}`);
      } else if (text !== "") {
        vscode.window.setStatusBarMessage(`daifu: ${text.split("\n").at(-1) ?? ""}`, SHOWN);
        if (!decided) {
          await this.showNext();
        }
      }
    } catch (error) {
      void vscode.window.showErrorMessage(`daifu: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

async function ask({ words, ask: question }: Choice): Promise<string | undefined> {
  if (question === undefined) {
    return "";
  }
  return vscode.window.showInputBox({
    title: words,
    prompt: question.prompt,
    placeHolder: question.placeHolder,
    validateInput: (answer) => faultOf(question, answer),
  });
}

/**
 * Returns in which frame a line is to be said: the one that is selected in the call stack; undefined for the held one.
 *
 * One looks at a frame further out quickly, and going on there is a matter of its own: that is asked first, and "none" is
 * returned if neither is wanted.
 */
async function frameFor(line: string): Promise<number | "none" | undefined> {
  const item = vscode.debug.activeStackItem;
  if (!(item instanceof vscode.DebugStackFrame) || !isDeciding(line)) {
    return item instanceof vscode.DebugStackFrame ? item.frameId : undefined;
  }
  const found: unknown = await item.session.customRequest("stackTrace", { threadId: item.threadId, startFrame: 0 });
  const frames = framesOf(found);
  const selected = frames.find(({ id }) => id === item.frameId);
  const held = frames[0];
  if (selected === undefined || held === undefined || selected === held) {
    return undefined;
  }
  const text = `\`${line}\` in ${selected.name}? The frames inside it are left first, as the exception would leave them.`;
  const inSelected = `In ${selected.name}`;
  const inHeld = `In ${held.name}, Where It Is Held`;
  const choice = await vscode.window.showWarningMessage(text, { modal: true }, inHeld, inSelected);
  return choice === inSelected ? selected.id : choice === inHeld ? undefined : "none";
}

function framesOf(found: unknown): { id: number; name: string }[] {
  const frames: unknown[] = isObject(found) && Array.isArray(found.stackFrames) ? found.stackFrames : [];
  return frames.filter(isObject).map(({ id, name }) => ({ id: numberOf(id), name: textOf(name) }));
}

/** Saves what is edited, or asks whether to: a surgery takes what is on disk. */
async function readyForSurgery(): Promise<boolean> {
  const unsaved = vscode.workspace.textDocuments.filter(({ isDirty, languageId, uri }) => {
    return isDirty && languageId === "python" && uri.scheme === "file";
  });
  const setting = vscode.workspace.getConfiguration("daifu").get<string>("saveBeforeSurgery", "ask");
  if (unsaved.length === 0 || setting === "never") {
    return true;
  }
  if (setting === "ask") {
    const names = unsaved.map(({ uri }) => vscode.workspace.asRelativePath(uri)).join(", ");
    const text = `Not saved: ${names}. A surgery takes what is on disk.`;
    const choice = await vscode.window.showWarningMessage(text, { modal: true }, "Save", "Take What Is on Disk");
    if (choice !== "Save") {
      return choice !== undefined;
    }
  }
  const saved = await Promise.all(unsaved.map((document) => document.save()));
  return saved.every(Boolean);
}
