/** Programs that run under `daifu run` without a terminal. */

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { endGroup, PYTHON, until } from "./places";

export class Program {
  /** What it has written to its standard error. */
  said = "";

  private constructor(
    readonly name: string,
    private readonly folder: string,
    private readonly process: ChildProcess,
  ) {
    this.process.stderr?.on("data", (part: Buffer) => (this.said += part.toString()));
  }

  /** Starts the program of a name in its folder. */
  static start(folder: string, name: string, environment: NodeJS.ProcessEnv): Program {
    const started = spawn(PYTHON, ["-m", "daifu_bc", "run", name], {
      cwd: folder,
      env: environment,
      stdio: ["ignore", "ignore", "pipe"],
      detached: true,
    });
    return new Program(name, folder, started);
  }

  /** Its number, as the editor shows it. */
  get pid(): number {
    return this.process.pid ?? 0;
  }

  /** Waits until it is held. */
  async held(): Promise<void> {
    await until(`${this.name} to be held`, () => {
      if (this.process.exitCode !== null) {
        throw new Error(`${this.name} has ended by ${this.process.exitCode}: ${this.said}`);
      }
      return this.said.includes("Held.");
    });
  }

  /** Waits until it has come so far that a file of its is there. */
  async starts(name: string): Promise<void> {
    await until(`${this.name} to write ${name}`, () => existsSync(join(this.folder, name)));
  }

  /** Waits for its end, and returns its exit code; null if a signal has ended it. */
  async end(): Promise<number | null> {
    await until(`the end of ${this.name}; it said: ${this.said}`, () => {
      return this.process.exitCode !== null || this.process.signalCode !== null;
    });
    return this.process.exitCode;
  }

  /** Returns a file that it has written. */
  wrote(name: string): string {
    return readFileSync(join(this.folder, name), "utf8");
  }

  async close(): Promise<void> {
    await endGroup(this.process);
  }
}
