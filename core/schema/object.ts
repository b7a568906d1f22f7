/** Whether a value is an object that is no array, such as what stands between braces in JSON. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The keys of `T` that may be `undefined` become optional ones that are never `undefined`. */
export type Defined<T extends object> = {
  [K in keyof T as undefined extends T[K] ? never : K]: T[K]
} & { [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined> }

/** The same object without the keys whose value is `undefined`. */
export function omitUndefined<T extends object>(object: T): Defined<T> {
  const given = object as Record<string, unknown>
  const defined: Record<string, unknown> = {}
  for (const key of Object.keys(given)) if (given[key] !== undefined) defined[key] = given[key]
  return defined as Defined<T>
}

/** JSON with sorted keys: the same text for equal values, in whatever order their keys were written. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  return `{${Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([key, each]) => `${JSON.stringify(key)}:${canonicalJson(each)}`)
    .join(',')}}`
}
