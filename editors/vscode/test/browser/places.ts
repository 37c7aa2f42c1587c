/** Where the tests find what they need, and how they end what they have started. */

import type { ChildProcess } from "node:child_process";
import { createServer, type AddressInfo } from "node:net";
import { resolve } from "node:path";

/** The extension's folder, and the repository's. */
export const EXTENSION = resolve(__dirname, "../../..");
export const REPOSITORY = resolve(EXTENSION, "../..");

/** What `test/get-vscode` has made. */
export const VSCODE = required("DAIFU_VSCODE");
/** An interpreter with daifu_bc and debugpy. */
export const PYTHON = required("DAIFU_PYTHON");
export const CHROMIUM = process.env.DAIFU_CHROMIUM ?? "/usr/bin/chromium";
/** Where the documentation's pictures are written to; nowhere if empty. */
export const FIGURES = process.env.DAIFU_FIGURES ?? "";
/** Where a picture and the logs go if a test fails. */
export const LEFTOVERS = process.env.DAIFU_LEFTOVERS ?? "";

function required(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") {
    throw new Error(`${name} is not set: run \`tox -e vscode\`, or test/all`);
  }
  return value;
}

/** Returns a port that is free at the moment. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

/** Ends a process that leads a group, and all of the group. */
export async function endGroup(leader: ChildProcess): Promise<void> {
  const gone = leader.exitCode !== null || leader.signalCode !== null;
  const ended = gone ? undefined : new Promise((exit) => leader.once("exit", exit));
  try {
    process.kill(-(leader.pid ?? 0), "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") {
      throw error;
    }
  }
  await ended;
}

/** Waits until something is so; says what it waited for if that takes too long. */
export async function until<T>(what: string, look: () => T | Promise<T>, milliseconds = 60_000): Promise<NonNullable<T>> {
  const end = Date.now() + milliseconds;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) {
      return found;
    }
    if (Date.now() > end) {
      throw new Error(`waited in vain for ${what}`);
    }
    await new Promise((passed) => setTimeout(passed, 100));
  }
}
