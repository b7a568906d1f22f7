import * as v from 'valibot'

/** What a tab keeps over a reload, under names that begin with this. */
const prefix = 'svc.'

/** `undefined` where nothing was kept: storage may be switched off, or hold what somebody else put there. */
export function readTab<S extends v.GenericSchema>(name: string, schema: S): v.InferOutput<S> | undefined {
  try {
    const parsed = v.safeParse(schema, JSON.parse(sessionStorage.getItem(prefix + name) ?? 'null'))
    return parsed.success ? parsed.output : undefined
  } catch {
    return undefined
  }
}
/** `undefined` removes it. */
export function writeTab(name: string, value: unknown): void {
  try {
    if (value === undefined) sessionStorage.removeItem(prefix + name)
    else sessionStorage.setItem(prefix + name, JSON.stringify(value))
  } catch {
    /* Where nothing can be kept, it lasts as long as the page is open. */
  }
}
