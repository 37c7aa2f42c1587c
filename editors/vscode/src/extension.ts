/** The extension: puts its parts together. */

import * as vscode from "vscode";

import { Adapters, attach, Configurations, pickRun, TYPE } from "./attaching";
import { NextLines } from "./nextline";
import { RunList } from "./runlist";
import { Speaker } from "./saying";
import { Sessions } from "./sessions";
import { StatusBar } from "./statusbar";

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("daifu", { log: true });
  const sessions = new Sessions();
  const runs = new RunList(log, (pid) => sessions.isAttached(pid), async (pid) => {
    // A notice may be pressed long after the run was attached to from the list.
    await (pid !== undefined && sessions.isAttached(pid) ? speaker.showNext() : attach(pid));
  });
  const lines = new NextLines();
  const bar = new StatusBar(runs, sessions);
  const speaker = new Speaker(sessions);

  const commands: Record<string, () => unknown> = {
    attach: () => attach(),
    pickRun,
    pass: () => speaker.named("pass"),
    skip: () => speaker.named("skip"),
    surgery: () => speaker.named("surgery"),
    return: () => speaker.named("return"),
    goto: () => speaker.atCursor(),
    more: () => speaker.choose(),
    showNext: () => speaker.showNext(),
  };

  context.subscriptions.push(
    log,
    sessions,
    runs,
    lines,
    bar,
    vscode.debug.registerDebugConfigurationProvider(TYPE, new Configurations()),
    vscode.debug.registerDebugAdapterDescriptorFactory(TYPE, new Adapters()),
    sessions.onDidChange(() => {
      void vscode.commands.executeCommand("setContext", "daifu.held", sessions.active !== undefined);
      lines.show(sessions.statuses.map(({ next }) => next).filter((next) => next !== undefined));
      bar.update();
    }),
    runs.onDidChange(() => {
      bar.update();
    }),
    ...Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(`daifu.${name}`, run)),
  );
}
