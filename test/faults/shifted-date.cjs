'use strict'
// Preloaded into a daemon: its wall clock is shifted by as many milliseconds as the file SHIFT_FILE says. The monotonic clock stays.
const { readFileSync } = require('node:fs')
const Real = Date
let read = 0
let shift = 0
const now = () => {
  const at = Real.now()
  if (at - read > 20) {
    read = at
    try {
      shift = Number(readFileSync(process.env.SHIFT_FILE, 'utf8')) || 0
    } catch {
      shift = 0
    }
  }
  return at + shift
}
globalThis.Date = class Date extends Real {
  constructor(...given) {
    if (given.length === 0) super(now())
    else super(...given)
  }
  static now() {
    return now()
  }
}
