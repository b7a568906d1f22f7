/** The value of an arithmetic expression of numbers, `+ - * / % ^` and brackets; `undefined` when it is not one. */
export function evaluate(expression: string): number | undefined {
  const tokens = expression.match(/\d+(?:\.\d+)?|[-+*/%^()]/g) ?? []
  // Whatever the pattern skipped is not arithmetic.
  if (tokens.join('') !== expression.replace(/\s+/g, '') || tokens.length < 3 || tokens.length > 200) return undefined
  let at = 0
  let broken = false

  function factor(): number {
    const token = tokens[at++]
    if (token === '-') return -factor()
    if (token === '+') return factor()
    if (token === '(') {
      const inner = sum()
      if (tokens[at++] !== ')') broken = true
      return inner
    }
    if (token === undefined || !/^\d/.test(token)) broken = true
    return Number(token)
  }
  function power(): number {
    const base = factor()
    if (tokens[at] !== '^') return base
    at++
    return base ** power()
  }
  function product(): number {
    let left = power()
    for (;;) {
      const operator = tokens[at]
      if (operator !== '*' && operator !== '/' && operator !== '%') return left
      at++
      const right = power()
      left = operator === '*' ? left * right : operator === '/' ? left / right : left % right
    }
  }
  function sum(): number {
    let left = product()
    for (;;) {
      const operator = tokens[at]
      if (operator !== '+' && operator !== '-') return left
      at++
      const right = product()
      left = operator === '+' ? left + right : left - right
    }
  }

  const value = sum()
  return broken || at !== tokens.length || !Number.isFinite(value) ? undefined : Number(value.toPrecision(12))
}
