//! openshell
