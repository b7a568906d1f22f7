/** Milliseconds that a test waits for what must happen: as long as a loaded machine may take. */
export const PATIENCE_MS = 60_000
