/** Where nothing that goes out may arrive, because it would act there with rights of the daemon. */
export interface OwnAddress {
  /** A name or an address. */
  readonly host: string
  readonly port: number
  /** For the refusal: `another daemon on the same database listens there`. */
  readonly what: string
}

/** Addresses of the daemon besides the ports it listens on, as its parts report them. */
export class OwnAddresses {
  readonly #byPart = new Map<string, readonly OwnAddress[]>()
  #all: readonly OwnAddress[] = []

  /** Replaces what a part reported before; an empty list takes it back. */
  set(part: string, addresses: readonly OwnAddress[]): void {
    this.#byPart.set(part, addresses)
    this.#all = [...this.#byPart.values()].flat()
  }
  all(): readonly OwnAddress[] {
    return this.#all
  }
}
