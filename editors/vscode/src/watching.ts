/** Notices when a run writes or removes its file, in the directories where daifu_bc keeps them. */

import { statSync, watch, type FSWatcher } from "node:fs";
import { isAbsolute, join } from "node:path";

/** Milliseconds: a run's file is written and renamed within few of them. */
const SETTLE = 200;
/** Milliseconds between looking for a directory that is not there yet, which is a system call. */
const LOOK = 3_000;

/** Returns the directories in which the files of a user's runs may be. */
export function runDirectories(environment: NodeJS.ProcessEnv, user: number): string[] {
  const base = environment.XDG_RUNTIME_DIR ?? "";
  const best = isAbsolute(base) && ownerOf(base) === user ? [join(base, "daifu_bc")] : [];
  return [...best, `/tmp/daifu_bc-${user}`];
}

function ownerOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.uid;
}

/** Calls back when something changes in one of some directories, whether they are there yet or not. */
export class DirectoryWatcher {
  private readonly watched = new Map<string, { inode: number; watcher: FSWatcher }>();
  private readonly look: NodeJS.Timeout;
  private settling: NodeJS.Timeout | undefined;

  constructor(
    private readonly directories: readonly string[],
    private readonly changed: () => void,
  ) {
    this.open();
    this.look = setInterval(() => {
      this.open();
    }, LOOK);
    this.look.unref();
  }

  dispose(): void {
    clearInterval(this.look);
    clearTimeout(this.settling);
    for (const { watcher } of this.watched.values()) {
      watcher.close();
    }
    this.watched.clear();
  }

  private open(): void {
    for (const directory of this.directories) {
      const inode = statSync(directory, { throwIfNoEntry: false })?.ino;
      const watched = this.watched.get(directory);
      if (watched?.inode === inode) {
        continue;
      }
      if (watched !== undefined) {
        watched.watcher.close();
        this.watched.delete(directory);
      }
      if (inode !== undefined) {
        this.start(directory, inode);
      }
      this.settle(); // it has come or gone, with all that is in it
    }
  }

  private start(directory: string, inode: number): void {
    try {
      const watcher = watch(directory, { persistent: false }, () => {
        this.settle();
      });
      watcher.on("error", () => {
        watcher.close();
        this.watched.delete(directory);
      });
      this.watched.set(directory, { inode, watcher });
    } catch {
      // It has gone again, or no more can be watched: it is tried again at the next look.
    }
  }

  private settle(): void {
    clearTimeout(this.settling);
    this.settling = setTimeout(this.changed, SETTLE);
  }
}
