let holders = 0

/**
 * Keeps the engine as small as it is: the young generation of the heap does not grow, and nothing is optimized. What
 * runs meanwhile runs once, leaves garbage only or allocates what stays: growing would keep memory for nothing, and the
 * optimizing compiler needs megabytes for code that is not called again. Afterwards both happen under load as usual.
 */
export function holdGrowth(): Disposable {
  if (holders++ === 0) setEngineOptions('--semi-space-growth-factor=1', '--maglev-filter=-*', '--turbo-filter=-*')
  let held = true
  return {
    [Symbol.dispose]() {
      if (!held) return
      held = false
      if (--holders === 0) setEngineOptions('--semi-space-growth-factor=2', '--maglev-filter=*', '--turbo-filter=*')
    },
  }
}

/** `node --v8-options` lists them. */
export function setEngineOptions(...options: readonly string[]): void {
  const v8 = process.getBuiltinModule('node:v8')
  for (const option of options) v8.setFlagsFromString(option)
}
