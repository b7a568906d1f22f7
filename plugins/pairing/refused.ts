/** What is told of a row that lets nobody in. */
export const describe = (id: string, name: string): string =>
  `the row of device ${id} ${JSON.stringify(name)} was not written by a daemon with the key of this vault, or was put back ` +
  `after the device was removed: its key is refused. Remove it (DELETE /api/pairing/devices/${id}), and pair it again if it is yours`
