/** The runs of the user as `daifu ps --json` lists them, and how they are shown in a list. */

export interface HoldFacts {
  readonly number: number;
  readonly thread: string;
  readonly file: string;
  readonly line: number;
  readonly function: string;
  readonly error: { readonly type: string; readonly text: string };
  /** Unix time, in seconds. */
  readonly since: number;
}

export interface Run {
  readonly pid: number;
  /** Tells this process from another one that had its number before. */
  readonly identity: string;
  readonly command: readonly string[];
  readonly folder: string;
  readonly state: "running" | "held";
  readonly hold: HoldFacts | undefined;
  readonly debugger: Address | undefined;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A line of the list to choose from. */
export interface RunItem {
  readonly label: string;
  readonly description: string;
  readonly detail: string;
  readonly run: Run;
}

/**
 * Takes what `daifu ps --json` prints. What a newer daifu_bc adds is ignored; a run that makes no sense is left out.
 *
 * @throws Error if it is no list at all.
 */
export function parseRuns(text: string): Run[] {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error(`\`daifu ps --json\` did not print JSON: ${text.slice(0, 200)}`);
  }
  if (!Array.isArray(found)) {
    throw new Error("`daifu ps --json` did not print a list");
  }
  return found.map(parseRun).filter((run) => run !== undefined);
}

function parseRun(found: unknown): Run | undefined {
  if (!isObject(found) || !isPositive(found.pid)) {
    return undefined;
  }
  const hold = parseHold(found.hold);
  return {
    pid: found.pid,
    identity: JSON.stringify(found.identity ?? null),
    command: Array.isArray(found.command) ? found.command.filter((word) => typeof word === "string") : [],
    folder: textOf(found.folder),
    state: found.state === "held" && hold !== undefined ? "held" : "running",
    hold,
    debugger: isObject(found.debugger) ? addressOf(found.debugger.host, found.debugger.port) : undefined,
  };
}

function parseHold(found: unknown): HoldFacts | undefined {
  if (!isObject(found)) {
    return undefined;
  }
  const error = isObject(found.error) ? found.error : {};
  return {
    number: numberOf(found.number),
    thread: textOf(found.thread),
    file: textOf(found.file),
    line: numberOf(found.line),
    function: textOf(found.function),
    error: { type: textOf(error.type), text: textOf(error.text) },
    since: numberOf(found.since),
  };
}

/**
 * Takes the line `HOST:PORT` that `daifu debug PID` prints.
 *
 * @throws Error if it is none.
 */
export function parseAddress(text: string): Address {
  const match = /^(\S+):(\d+)\s*$/.exec(text);
  const address = match ? addressOf(match[1]?.replace(/^\[(.*)\]$/, "$1"), Number(match[2])) : undefined;
  if (address === undefined) {
    throw new Error(`\`daifu debug\` printed no address: ${text.slice(0, 200)}`);
  }
  return address;
}

function addressOf(host: unknown, port: unknown): Address | undefined {
  return typeof host === "string" && host !== "" && isPositive(port) && port < 65536 ? { host, port } : undefined;
}

/** Returns the lines to choose from: those that are held first, the one that was held last at the top. */
export function runItems(runs: readonly Run[], now: number): RunItem[] {
  const ordered = [...runs].sort((a, b) => (b.hold?.since ?? 0) - (a.hold?.since ?? 0) || b.pid - a.pid);
  return ordered.map((run) => ({
    label: `${run.state === "held" ? "$(debug-pause)" : "$(debug-start)"} ${programOf(run.command)}`,
    description: `process ${run.pid}`,
    detail: run.hold ? `${heldSentence(run.hold)} (for ${duration(now - run.hold.since)})` : "running",
    run,
  }));
}

/** Says in a line what a run is held by. */
export function heldSentence(hold: HoldFacts): string {
  const error = hold.error.text ? `${hold.error.type}: ${hold.error.text}` : hold.error.type;
  return `${error} at ${baseName(hold.file)}:${hold.line}, in ${hold.function}`;
}

/** Returns what a person would call the program of a command: the script or module with its arguments. */
export function programOf(command: readonly string[]): string {
  const words = command.slice(1);
  const start = words.indexOf("run") + 1;
  const behind = isDaifu(words, start) ? withoutOptions(words.slice(start)) : withoutOptions(words);
  return behind.length > 0 ? [baseName(behind[0] ?? ""), ...behind.slice(1)].join(" ") : command.join(" ");
}

function isDaifu(words: readonly string[], start: number): boolean {
  return words.slice(0, start).some((word) => word === "daifu_bc" || baseName(word) === "daifu");
}

/** Leaves out the options in front of a program; that one of them takes a value is known by what looks like no program. */
function withoutOptions(words: readonly string[]): readonly string[] {
  const module = words.indexOf("-m");
  const script = words.findIndex((word, at) => !word.startsWith("-") && (/\.pyc?$/.test(word) || at === 0));
  return module >= 0 && (script < 0 || module < script) ? words.slice(module + 1) : words.slice(Math.max(script, 0));
}

/** Tells whether a run belongs to one of some folders: it was started there, or what has crashed lies there. */
export function isIn(run: Run, folders: readonly string[]): boolean {
  return folders.some((folder) => isUnder(run.folder, folder) || isUnder(run.hold?.file ?? "", folder));
}

function isUnder(path: string, folder: string): boolean {
  const base = folder.replace(/\/+$/, "");
  return path === base || path.startsWith(`${base}/`);
}

/** Remembers which holds somebody was told of, so that each is told once. */
export class Told {
  private known = new Set<string>();

  /** Returns the runs that are held and new; the others, and those that have gone on, are forgotten. */
  fresh(runs: readonly Run[]): Run[] {
    const held = new Map(runs.filter((run) => run.hold !== undefined).map((run) => [holdKey(run), run]));
    const fresh = [...held].filter(([key]) => !this.known.has(key)).map(([, run]) => run);
    this.known = new Set(held.keys());
    return fresh;
  }
}

function holdKey(run: Run): string {
  return `${run.pid} ${run.identity} ${run.hold?.number ?? 0}`;
}

export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const units: readonly (readonly [number, string])[] = [
    [86400, "d"],
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const at = units.findIndex(([size]) => whole >= size);
  if (at < 0) {
    return "0 s";
  }
  const [first, second] = units.slice(at, at + 2);
  const parts = first ? [`${Math.floor(whole / first[0])} ${first[1]}`] : [];
  const rest = first ? whole % first[0] : 0;
  return second && rest >= second[0] ? `${parts.join("")} ${Math.floor(rest / second[0])} ${second[1]}` : parts.join("");
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isPositive(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0;
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
