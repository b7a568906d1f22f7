/**
 * What is worked out once for each object, and goes with it. It stands in a property that copies and JSON do not have:
 * the table of a `WeakMap` grows to all objects between two collections and stays so large.
 */
export class HiddenProperty<Holder extends object, Value> {
  readonly #key = Symbol('hidden')

  /** `make` returns anything but `undefined`. */
  get(holder: Holder, make: (holder: Holder) => Value): Value {
    const known = (holder as { readonly [key: symbol]: Value | undefined })[this.#key]
    if (known !== undefined) return known
    const value = make(holder)
    Reflect.defineProperty(holder, this.#key, { value })
    return value
  }
}
