import { stableId } from 'svc/internal'
import type { Session } from './schema.ts'

/** The id of a person: whoever renames themselves keeps it, and nobody can choose that of somebody else. */
export const personIdOf = ({ issuer, sub }: Pick<Session, 'issuer' | 'sub'>): string => stableId('person', issuer, sub)
