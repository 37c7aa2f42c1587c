import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";

import { DirectoryWatcher, runDirectories } from "../../src/watching";

const FOLDER = mkdtempSync(join(tmpdir(), "daifu-watching-"));
const USER = process.getuid?.() ?? 0;
after(() => {
  rmSync(FOLDER, { recursive: true });
});

describe("the runs' directories", () => {
  test("are the runtime directory's, if it is the user's, and the common one", () => {
    assert.deepEqual(runDirectories({ XDG_RUNTIME_DIR: FOLDER }, USER), [join(FOLDER, "daifu_bc"), `/tmp/daifu_bc-${USER}`]);
    assert.deepEqual(runDirectories({ XDG_RUNTIME_DIR: FOLDER }, USER + 1), [`/tmp/daifu_bc-${USER + 1}`]);
    assert.deepEqual(runDirectories({ XDG_RUNTIME_DIR: join(FOLDER, "gone") }, USER), [`/tmp/daifu_bc-${USER}`]);
    assert.deepEqual(runDirectories({ XDG_RUNTIME_DIR: "." }, USER), [`/tmp/daifu_bc-${USER}`]);
    assert.deepEqual(runDirectories({}, USER), [`/tmp/daifu_bc-${USER}`]);
  });
});

describe("a watched directory", () => {
  /** Waits for the next call. */
  function calls(): { called: () => void; next: () => Promise<void> } {
    let arrived = 0;
    let wake: (() => void) | undefined;
    return {
      called: () => {
        arrived++;
        wake?.();
      },
      next: async () => {
        if (arrived === 0) {
          await new Promise<void>((resolve) => (wake = resolve));
        }
        arrived = 0;
      },
    };
  }

  test("tells of a file that comes, is replaced and goes, also if it was not there at first", { timeout: 30_000 }, async () => {
    const directory = join(FOLDER, "later");
    const heard = calls();
    const watcher = new DirectoryWatcher([directory], heard.called);
    mkdirSync(directory);
    const alive = setInterval(() => undefined, 1_000); // the watcher itself keeps no program running
    try {
      await heard.next(); // the directory itself
      const file = join(directory, "7.json");
      writeFileSync(`${file}.new`, "{}");
      renameSync(`${file}.new`, file);
      await heard.next();
      writeFileSync(`${file}.new`, "{}");
      renameSync(`${file}.new`, file);
      await heard.next();
      rmSync(file);
      await heard.next();
    } finally {
      clearInterval(alive);
      watcher.dispose();
    }
  });
});
