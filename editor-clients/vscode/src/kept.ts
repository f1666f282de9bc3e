/** What the setup has put on this machine, in a file that the hook reads which runs when the extension is removed. */

export interface Kept {
  /** The extension's own storage, with the programs. */
  storage: string;
  /** Files and folders that `lacuna uninstall` would remove; the setup says them. */
  keeps?: string[];
  /** The file that announces a running service. */
  announced?: string;
}

/** Its path in the folder of the extension: the hook knows no other. */
export const KEPT = "dist/kept.json";
