/** A window of VS Code in the browser, as a person sees and uses it. */

import { join } from "node:path";

import { chromium, errors, type Browser, type Locator, type Page } from "playwright-core";

import { CHROMIUM, FIGURES, LEFTOVERS, until } from "./places";

const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Milliseconds for what is tried again. */
const SHORT = 5_000;
/** What the editor writes behind the line at which the run goes on, and adds if a surgery has put it in. */
const MARK = "goes on here";
const IN_NEW_CODE = "in the new code";

export interface MarkedLine {
  readonly number: number;
  readonly text: string;
  /** Whether it is a line of the new code. */
  readonly fresh: boolean;
}

export class Window {
  private constructor(
    private readonly browser: Browser,
    private readonly page: Page,
  ) {}

  static async open(url: string, folder: string): Promise<Window> {
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS });
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.setDefaultTimeout(60_000);
    const window = new Window(browser, page);
    await page.goto(`${url}/?folder=${folder}`);
    await page.waitForSelector(".monaco-workbench .explorer-folders-view");
    return window;
  }

  async close(): Promise<void> {
    await this.browser.close();
  }

  /** Opens a file by a double click in the explorer. */
  async openFile(name: string): Promise<void> {
    await this.retried(`${name} to open`, async () => {
      await this.page.keyboard.press("Control+Shift+E");
      const row = this.page.locator(".explorer-folders-view .monaco-list-row", { hasText: name });
      await row.first().dblclick({ timeout: SHORT });
      const tab = this.page.locator(".editor-group-container.active .tab.active", { hasText: name });
      await tab.waitFor({ timeout: SHORT });
    });
  }

  /** Runs a command of the palette. A debugger that stops at that moment takes the focus, and the palette closes. */
  async command(title: string): Promise<void> {
    await this.retried(`the command ${title}`, async () => {
      await this.page.keyboard.press("F1");
      const box = this.page.locator(".quick-input-widget .quick-input-filter input");
      await box.fill(`>${title}`, { timeout: SHORT });
      const row = this.page.locator(".quick-input-widget .quick-input-list .monaco-list-row", { hasText: title });
      await row.first().click({ timeout: SHORT });
    });
  }

  /** Does what may come to nothing as often as it takes, as a person would: the window moves while it is being used. */
  private async retried(what: string, act: () => Promise<void>): Promise<void> {
    await until(what, async () => {
      try {
        await act();
        return true;
      } catch (error) {
        if (!(error instanceof errors.TimeoutError)) {
          throw error;
        }
        await this.page.keyboard.press("Escape");
        return false;
      }
    });
  }

  /** Returns the lines of the list that is asked to choose from. */
  async choices(): Promise<string[]> {
    const rows = this.page.locator(".quick-input-widget .quick-input-list .monaco-list-row");
    await rows.first().waitFor();
    return (await rows.allInnerTexts()).map(plain);
  }

  /** Chooses the line of the list that has a text. */
  async choose(text: string): Promise<void> {
    await this.page.locator(".quick-input-widget .quick-input-list .monaco-list-row", { hasText: text }).first().click();
  }

  /** Answers the question in the input box. */
  async answer(text: string): Promise<void> {
    const box = this.page.locator(".quick-input-widget .quick-input-filter input, .quick-input-widget .quick-input-box input");
    await box.first().waitFor();
    await this.page.keyboard.type(text);
    await this.page.keyboard.press("Enter");
  }

  /** Waits for a notice, and presses a button of it. */
  async pressInNotice(text: string, button: string): Promise<string> {
    const notice = this.page.locator(".notification-toast", { hasText: text }).first();
    await notice.waitFor();
    const told = plain(await notice.locator(".notification-list-item-message").innerText());
    await notice.locator(".monaco-button", { hasText: button }).click();
    return told;
  }

  /** Waits for a notice, and puts it away. */
  async closeNotice(text: string): Promise<void> {
    const notice = this.page.locator(".notification-toast", { hasText: text }).first();
    await notice.waitFor();
    await notice.hover();
    await notice.locator(".action-label.codicon-notifications-clear").click();
    await notice.waitFor({ state: "hidden" });
  }

  /** Presses a button of the debug toolbar. */
  async pressTool(name: string): Promise<void> {
    await this.tool(name).click();
  }

  /** Waits until the debug toolbar is there without a button. */
  async toolGoes(name: string): Promise<void> {
    await this.page.locator(".debug-toolbar").waitFor();
    await this.tool(name).waitFor({ state: "detached" });
  }

  private tool(name: string): Locator {
    return this.page.locator(`.debug-toolbar .action-label[aria-label^="${name}"]`);
  }

  /** Waits until the debugger stands in a function, at a line if one is given. */
  async stopsIn(name: string, line?: number): Promise<void> {
    await this.page.waitForSelector(".debug-toolbar");
    if (!(await this.page.locator(".debug-call-stack").isVisible())) {
      await this.page.keyboard.press("Control+Shift+D");
    }
    const at = new RegExp(`${name}.*\\D${line ?? "\\d+"}:\\d+$`, "s");
    await this.page.locator(".debug-call-stack .stack-frame", { hasText: at }).first().waitFor();
    await this.page.waitForSelector(".debug-top-stack-frame-line");
  }

  /** Selects a frame of the call stack, to look at it. */
  async selectFrame(name: string): Promise<void> {
    await this.page.locator(".debug-call-stack .stack-frame", { hasText: name }).first().click();
    await this.page.locator(".debug-call-stack .monaco-list-row.selected", { hasText: name }).waitFor();
  }

  /** Waits until a variable of the innermost frame is shown, and returns its value. */
  async variable(name: string): Promise<string> {
    const row = this.page.locator(`.debug-variables .monaco-list-row[aria-label^="${name}, value "]`);
    await row.first().waitFor();
    return ((await row.first().getAttribute("aria-label")) ?? "").slice(`${name}, value `.length);
  }

  /** Waits for a text below the crashed line. */
  async exceptionShows(text: string): Promise<void> {
    await this.page.locator(".exception-widget", { hasText: text }).waitFor();
  }

  /** Waits until one line is marked as the one that runs next. */
  async marks(line: MarkedLine): Promise<void> {
    const wanted = JSON.stringify(line);
    let seen = "";
    try {
      await until("a mark", async () => (seen = JSON.stringify(await this.markNow())) === wanted);
    } catch (error) {
      throw new Error(`marked is ${seen}, and not ${wanted}`, { cause: error });
    }
  }

  /** Waits until no line is marked. */
  async marksNothing(): Promise<void> {
    await until("no mark", async () => (await this.markNow()) === undefined);
  }

  private async markNow(): Promise<MarkedLine | undefined> {
    // Runs in the page, where the mark is a text that a style adds behind the line.
    const found: unknown = await this.page.evaluate(`(() => {
      for (const part of document.querySelectorAll(".editor-group-container.active .view-line span")) {
        const mark = getComputedStyle(part, "::after").content;
        if (mark.includes(${JSON.stringify(MARK)})) {
          const line = part.closest(".view-line"), editor = part.closest(".monaco-editor"), top = line.getBoundingClientRect().top;
          const number = [...editor.querySelectorAll(".margin .line-numbers")].find((n) => Math.abs(n.getBoundingClientRect().top - top) < 2);
          return { number: Number(number?.textContent), text: line.textContent, fresh: mark.includes(${JSON.stringify(IN_NEW_CODE)}) };
        }
      }
      return null;
    })()`);
    if (found === null) {
      return undefined;
    }
    const line = found as MarkedLine;
    return { ...line, text: plain(line.text) };
  }

  /** Puts other text in the place of a line, behind its indentation. */
  async replaceLine(number: number, text: string): Promise<void> {
    await this.goToLine(number);
    await this.page.keyboard.press("End");
    await this.page.keyboard.press("Shift+Home");
    await this.page.keyboard.type(text);
  }

  /** Puts a line behind another one. */
  async insertLine(behind: number, text: string): Promise<void> {
    await this.goToLine(behind);
    await this.page.keyboard.press("End");
    await this.page.keyboard.press("Enter");
    await this.page.keyboard.type(text);
  }

  async goToLine(number: number): Promise<void> {
    const editor = this.page.locator(".editor-group-container.active .monaco-editor").first();
    await editor.click({ position: { x: 300, y: 8 } });
    await this.page.keyboard.press("Control+G");
    const box = this.page.locator(".quick-input-widget .quick-input-filter input");
    await box.fill(`:${number}`);
    await this.page.keyboard.press("Enter");
    await this.page.locator(".quick-input-widget").waitFor({ state: "hidden" });
  }

  async save(): Promise<void> {
    await this.page.keyboard.press("Control+S");
    await this.page.locator(".editor-group-container.active .tab.active:not(.dirty)").waitFor();
  }

  /** Presses a button of the question in the middle of the window. */
  async pressInDialog(button: string): Promise<void> {
    await this.page.locator(".monaco-dialog-box .monaco-button", { hasText: button }).first().click();
  }

  /** Presses a key, as F5. */
  async press(key: string): Promise<void> {
    await this.page.keyboard.press(key);
  }

  /** Waits until no debug session is there any more. */
  async debuggingEnds(): Promise<void> {
    await this.page.locator(".debug-toolbar").waitFor({ state: "hidden" });
  }

  /** Waits for a text in the status bar. */
  async statusBarShows(text: string | RegExp): Promise<void> {
    await this.page.locator(".statusbar-item", { hasText: text }).first().waitFor();
  }

  /** Waits for a text in the Debug Console. */
  async consoleShows(text: string): Promise<void> {
    await this.page.locator(".repl .monaco-list-row", { hasText: text }).first().waitFor();
  }

  /** Writes a picture for the documentation, if such are wanted. */
  async figure(name: string): Promise<void> {
    if (FIGURES !== "") {
      await this.page.screenshot({ path: join(FIGURES, name) });
    }
  }

  /** Writes a picture of how things stand, for whoever looks into a failure. */
  async leave(name: string): Promise<void> {
    if (LEFTOVERS !== "") {
      await this.page.screenshot({ path: join(LEFTOVERS, name) });
    }
  }
}

/** Returns a text as it was written: the editor shows spaces as ones that do not break, and puts icons between. */
function plain(text: string): string {
  return text.replaceAll(/[\ue000-\uf8ff]/g, "").replaceAll(/[\s\u00a0\u200b]+/g, " ").trim();
}
