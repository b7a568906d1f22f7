import type { Skill } from './wire.ts'

interface SkillChoiceProps {
  readonly skills: readonly Skill[]
  /** Those of the agent; `undefined` leaves it to its template. */
  readonly chosen: readonly string[] | undefined
  /** Those that it would have otherwise. */
  readonly usual: readonly string[]
  readonly onChoose: (chosen: readonly string[] | undefined) => void
}

/** The skills that a new agent may use. */
export function SkillChoice({ skills, chosen, usual, onChoose }: SkillChoiceProps) {
  const toggle = (name: string, isChosen: boolean): void =>
    onChoose(isChosen ? [...(chosen ?? []), name] : chosen?.filter((other) => other !== name))
  return (
    <>
      <label class="check">
        <input
          type="checkbox"
          checked={chosen !== undefined}
          onChange={(event) => onChoose(event.currentTarget.checked ? usual : undefined)}
        />{' '}
        Choose its skills
      </label>
      {chosen !== undefined && (
        <fieldset class="skills">
          <legend>{describe(chosen.length)}</legend>
          {skills.map(({ name, description }) => (
            <label key={name} class="check" title={description}>
              <input
                type="checkbox"
                checked={chosen.includes(name)}
                onChange={(event) => toggle(name, event.currentTarget.checked)}
              />{' '}
              {name}
            </label>
          ))}
        </fieldset>
      )}
    </>
  )
}

function describe(count: number): string {
  if (count === 0) return 'No skill'
  return count === 1 ? 'One skill and no other' : `${count} skills and no other`
}
