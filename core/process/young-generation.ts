let holders = 0

/**
 * Keeps the young generation of the heap as small as it is. What runs meanwhile leaves garbage only, or allocates what
 * stays: growing would keep memory for nothing. Afterwards it grows under load as usual.
 */
export function holdYoungGeneration(): Disposable {
  if (holders++ === 0) setGrowth(1)
  return {
    [Symbol.dispose]() {
      if (--holders === 0) setGrowth(2)
    },
  }
}
/** `node --v8-options` lists it. */
function setGrowth(factor: number): void {
  process.getBuiltinModule('node:v8').setFlagsFromString(`--semi-space-growth-factor=${factor}`)
}
