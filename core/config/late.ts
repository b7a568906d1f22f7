import type * as EditToml from './edit-toml.ts'

/** `editToml`, evaluated with the first edit and not with every start. */
export const editToml = async (...args: Parameters<typeof EditToml.editToml>): Promise<string> =>
  (await import('./edit-toml.ts')).editToml(...args)
