/** The debug sessions of type `daifu`, and what their runs are held by. */

import * as vscode from "vscode";

import { pidOf, TYPE } from "./attaching";
import { isObject } from "./runs";
import { NOT_HELD, parseAnswer, parseStatus, type Answer, type Status } from "./status";

/** The parts of the protocol's messages that are looked at. */
interface Message {
  readonly type: string;
  readonly event?: string;
  readonly body?: unknown;
}

class Session {
  status = NOT_HELD;
  private asked = 0;

  constructor(
    readonly session: vscode.DebugSession,
    private readonly changed: () => void,
  ) {}

  /** Asks the run how it is held. What was asked for last counts. */
  async refresh(): Promise<void> {
    const number = ++this.asked;
    let status: Status;
    try {
      status = parseStatus(await this.session.customRequest("daifuStatus"));
    } catch {
      status = NOT_HELD; // it has ended, or goes on at the moment
    }
    if (number === this.asked) {
      this.know(status);
    }
  }

  async say(words: string, frame: number | undefined): Promise<Answer> {
    const number = ++this.asked;
    const where = frame === undefined ? {} : { frameId: frame };
    const found: unknown = await this.session.customRequest("evaluate", { expression: words, context: "daifu", ...where });
    const answer = parseAnswer(found);
    // An event that has come meanwhile knows more than the answer.
    if (number === this.asked && answer.status !== undefined) {
      this.know(answer.status);
    }
    return answer;
  }

  hear(event: string, body: unknown): void {
    const told = isObject(body) && event === "stopped" ? body.daifu : body;
    if ((event === "stopped" || event === "daifuHeld") && isObject(told)) {
      this.know(parseStatus(told));
    } else if (event === "stopped" || event === "continued") {
      void this.refresh();
    } else if (event === "daifuResumed" || event === "terminated" || event === "exited") {
      this.know(NOT_HELD);
    }
  }

  private know(status: Status): void {
    this.asked++;
    this.status = status;
    this.changed();
  }
}

export class Sessions implements vscode.Disposable, vscode.DebugAdapterTrackerFactory {
  private readonly open = new Map<string, Session>();
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private readonly subscriptions: vscode.Disposable[];

  constructor() {
    this.subscriptions = [
      vscode.debug.registerDebugAdapterTrackerFactory(TYPE, this),
      vscode.debug.onDidChangeActiveDebugSession(() => {
        this.fire();
      }),
      vscode.debug.onDidTerminateDebugSession((session) => {
        if (this.open.delete(session.id)) {
          this.fire();
        }
      }),
    ];
  }

  dispose(): void {
    this.subscriptions.forEach((subscription) => {
      subscription.dispose();
    });
    this.changed.dispose();
  }

  isAttached(pid: number): boolean {
    return [...this.open.values()].some(({ session }) => pidOf(session) === pid);
  }

  /** How the runs are held that are attached to. */
  get statuses(): Status[] {
    return [...this.open.values()].map(({ status }) => status).filter(({ held }) => held);
  }

  /** How the run of the session is held that is looked at; undefined if it is not. */
  get active(): Status | undefined {
    const status = this.activeSession?.status;
    return status?.held === true ? status : undefined;
  }

  private get activeSession(): Session | undefined {
    return this.open.get(vscode.debug.activeDebugSession?.id ?? "");
  }

  /**
   * Says words to the run that is looked at.
   *
   * @param frame the number of the frame in which they are said; the held one if left out.
   * @throws Error if no run is attached to, or it does not take words now.
   */
  async say(words: string, frame?: number): Promise<Answer> {
    const session = this.activeSession;
    if (session === undefined) {
      throw new Error("no held run is attached to");
    }
    return session.say(words, frame);
  }

  createDebugAdapterTracker(session: vscode.DebugSession): vscode.DebugAdapterTracker {
    const own = new Session(session, () => {
      this.fire();
    });
    this.open.set(session.id, own);
    return {
      onDidSendMessage: ({ type, event, body }: Message) => {
        if (type === "event" && event !== undefined) {
          own.hear(event, body);
        }
      },
    };
  }

  private fire(): void {
    this.changed.fire();
  }
}
