// Package record keeps an agent's records: JSON objects under a namespace, a
// kind and an id, as the AINL memory contract v1 and v1.1 describes them. It
// owns records.db, which programs of the contract's reference can read and
// write as well.
//
// The Adapter speaks the contract's positional verbs, the Service offers the
// same as operations; both stand on a Store. docs/RECORDS.md says where the
// store differs from the reference, and why.
package record
