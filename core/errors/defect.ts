/**
 * Told of a failure that nobody was meant to see: it is logged, counted and shown in the health detail. `where` names
 * the plugin.
 */
export type OnDefect = (error: unknown, where: string) => void
